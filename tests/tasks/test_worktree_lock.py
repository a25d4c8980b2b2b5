"""The lock of the worktrees: what waiting for it costs, and that it holds."""

from __future__ import annotations

import asyncio
import fcntl
import os

import pytest

from cockpit.core.project_paths import ProjectPaths
from cockpit.tasks.git import worktree_lock, worktrees_folder


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("COCKPIT_STATE_DIR", str(tmp_path / "state"))
    return ProjectPaths(root=tmp_path, home=tmp_path, git=True)


async def test_one_at_a_time_has_the_lock_in_the_order_of_asking(place):
    holding, order = [], []

    async def work(number):
        async with worktree_lock(place):
            holding.append(number)
            assert holding == [number]
            await asyncio.sleep(0)
            holding.remove(number)
            order.append(number)

    await asyncio.gather(*(work(number) for number in range(20)))
    assert order == list(range(20))


async def test_one_that_is_cancelled_in_line_holds_up_nobody(place):
    async with worktree_lock(place):
        waiting = [asyncio.create_task(_take(place)) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
    await asyncio.wait(waiting)
    assert waiting[0].cancelled()
    assert waiting[1].result()


async def test_it_waits_for_another_process(place):
    async with worktree_lock(place):
        pass
    handle = os.open(worktrees_folder(place) / ".lock", os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        waiting = asyncio.create_task(_take(place))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
    finally:
        os.close(handle)
    assert await waiting


async def _take(place):
    async with worktree_lock(place):
        return True

"""Processes of a chain are killed at random points: in a few seeds here, in as many as one likes by hand."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from chains.chain_kill import check, play
from examples import examples
from tasks.taskrun_world import World

from cockpit.backlog import service
from cockpit.chains.create_chain import ChainOptions, create_chain
from cockpit.chains.supervisor import Supervision, supervise
from cockpit.core.errors import StoreUnwritable
from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain

pytestmark = pytest.mark.slow


@pytest.mark.search
@pytest.mark.parametrize("seed", range(5, 5 + examples(1)))
def test_whoever_is_killed_every_task_comes_to_its_end_once(seed: int, tmp_path: Path) -> None:
    project, _ = play(tmp_path, seed)
    check(project)


async def test_a_chain_ends_when_its_report_is_written_and_not_before(tmp_path: Path) -> None:
    world = World.made(tmp_path)
    task_id = world.task()
    made = await create_chain(world.store, world.place, ChainOptions("all", headless=True))
    world.store.write_now(lambda tx: service.set_status(tx, task_id, "done", by="person"))
    seen: list[tuple[str, str]] = []

    def stored() -> Chain:
        return world.store.read_now(lambda found: chains.load(found, made.chain_id))

    async def dies(ending: Chain) -> None:
        seen.append((ending.status, stored().status))
        raise asyncio.CancelledError

    async def is_full(ending: Chain) -> None:
        seen.append((ending.status, stored().status))
        raise StoreUnwritable("The disk is full.")

    with pytest.raises(asyncio.CancelledError):
        await supervise(Supervision(world.store, world.place, os.environ, before_end=dies), "ch-1")
    assert stored().status == "running"
    with pytest.raises(StoreUnwritable, match="disk is full"):
        await supervise(
            Supervision(world.store, world.place, os.environ, before_end=is_full), "ch-1"
        )
    assert stored().status == "completed"
    assert seen == [("completed", "running")] * 2
    world.store.close()

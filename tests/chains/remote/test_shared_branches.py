"""Which branches of the shared repository go, and when."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tasks.taskrun_world import World

from cockpit.backlog import service
from cockpit.chains.remote.merge_remote_work import local_branch
from cockpit.chains.remote.message_types import base_branch, work_branch
from cockpit.chains.remote.shared_repository import remove_merged, remove_shared
from cockpit.store.chains import remote_runs
from cockpit.store.chains.remote_runs import RemoteRun
from cockpit.store.db.transaction import Tx

pytestmark = pytest.mark.slow

MANY = 5


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.made(tmp_path)
    yield made
    made.store.close()


def git(folder: Path, *words: str, given: str = "") -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *words], input=given, capture_output=True, text=True, check=True
    ).stdout


def listed(shared: Path) -> set[str]:
    return set(git(shared, "for-each-ref", "--format=%(refname:short)").split())


async def test_branches_of_runs_that_are_over_go_and_the_late_ones_at_the_end(world, tmp_path):
    store, shared = world.store, tmp_path / "shared.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(world.root), str(shared))

    def add(tx: Tx) -> list[RemoteRun]:
        runs = []
        for number in range(MANY + 2):
            task_id = service.create_task(tx, f"Do {number}", by="test").task_id
            remote_runs.send(tx, task_id, 1, "0" * 40)
            for worker in ("lost", "north"):
                remote_runs.claim(tx, task_id, 1, worker)
            runs.append(remote_runs.load(tx.connection, task_id, 1))
        return runs

    *over, going, back = await store.write(add)
    head = git(shared, "rev-parse", "HEAD").strip()

    def push(names: list[str]) -> None:
        given = "".join(f"create refs/heads/{name} {head}\n" for name in names)
        git(shared, "update-ref", "--stdin", given=given)

    kept = {work_branch(each.task_id, 1, fence) for each in (going, back) for fence in (1, 2)}
    push([*(work_branch(each.task_id, 1, 2) for each in over), *kept, base_branch("ch-1")])
    push([base_branch("ch-2"), "of-a-person"])
    before = listed(shared)
    for each in over:
        await store.write(lambda tx, each=each: remote_runs.finish(tx, each.task_id, 1))
    late = work_branch(over[0].task_id, 1, 1)
    push([late])  # of the worker that lost its run
    await remove_shared(world.task_context(""), str(shared), "ch-1")
    gone = before - listed(shared)
    assert late not in listed(shared)
    assert gone == {work_branch(each.task_id, 1, 2) for each in over}, "a run still goes on"
    for each in (going, back):
        await store.write(lambda tx, each=each: remote_runs.give_back(tx, each.task_id, 1))
    await remove_shared(world.task_context(""), str(shared), "ch-1")
    assert before - listed(shared) - gone == {base_branch("ch-1")}, "unfinished work stays"


async def test_merged_branches_go_here_but_for_one_that_is_checked_out(world, tmp_path):
    """Also beside the user's own branch ``cockpit``, below which git keeps no other."""
    git(world.root, "branch", "cockpit")
    context, runs = world.task_context(""), [remote_of(number) for number in (1, 2, 3)]
    names = [await local_branch(context, each) for each in runs]
    for name in names:
        git(world.root, "branch", name)
    git(world.root, "switch", "--quiet", names[0])
    for each in runs[:2]:
        await remove_merged(context, each)
    assert listed(world.root) == {"main", "cockpit", names[0], names[2]}


def remote_of(number: int) -> RemoteRun:
    return RemoteRun(f"T-{number}", 1, 1, "taken", "north", "0" * 40, {"commit": "1" * 40}, 0, None)


async def test_a_repository_that_is_gone_stops_nothing(world, tmp_path):
    await remove_shared(world.task_context(""), str(tmp_path / "gone.git"), "ch-1")

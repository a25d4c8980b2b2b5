"""Many branches of workers come by few fetches, and a run that changed nothing without one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from chains.remote.played_worker import PASSES
from tasks.taskrun_world import World, git

from cockpit.chains.remote.fetch_branches import BranchFetcher
from cockpit.chains.remote.merge_remote_work import take_over
from cockpit.chains.remote.message_types import RunResult, StepResult
from cockpit.store.chains import remote_runs
from cockpit.store.chains.remote_runs import RemoteRun
from cockpit.store.db.transaction import Tx
from cockpit.tasks.git import WorktreeError, commit_of, is_ancestor
from cockpit.tasks.prepare_worktree import prepare_chain_branch


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.made(tmp_path)
    yield made
    made.store.close()


async def test_those_that_wait_come_together_and_a_missing_one_fails_alone(world, tmp_path):
    shared = tmp_path / "shared.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(world.root), str(shared))
    base = git(shared, "rev-parse", "HEAD").strip()
    tree = f"{base}^{{tree}}"
    who = ("-c", "user.name=North", "-c", "user.email=north@localhost")
    commits = {}
    for number in range(9):
        words = (*who, "commit-tree", tree, "-p", base, "-m", f"Make {number}")
        commits[number] = git(shared, *words).strip()
        git(shared, "update-ref", f"refs/heads/work-{number}", commits[number])
    fetcher = BranchFetcher(world.task_context(""), str(shared))
    names = [f"work-{number}" for number in commits]
    await asyncio.gather(*(fetcher.fetch(name, f"cockpit/{name}") for name in names))
    for number, commit in commits.items():
        assert await commit_of(world.root, f"refs/heads/cockpit/work-{number}") == commit
        assert await is_ancestor(world.root, base, commit)
        assert not await is_ancestor(world.root, commit, base)
    both = (fetcher.fetch(name, f"again/{name}") for name in ("work-1", "none", "work-2"))
    ended = await asyncio.gather(*both, return_exceptions=True)
    assert [type(each) for each in ended] == [type(None), WorktreeError, type(None)]


async def test_a_run_that_changed_nothing_is_done_without_a_fetch(world, tmp_path):
    task_id = world.task(task_type="investigate")
    context = world.task_context("")
    chain = await prepare_chain_branch(context, task_id)
    base = await commit_of(Path(chain.path), "HEAD") or ""
    first = StepResult("implement", "done", {"summary": "It is as it should be.", "tip": base})
    result = RunResult(
        task_id=task_id, run=1, fence=1, worker="north", status="ready", summary="ready", commit=base,
        steps=(first, *(StepResult(step, outcome, {}) for step, outcome in PASSES)),
    )  # fmt: skip

    def receive(tx: Tx) -> RemoteRun:
        remote_runs.send(tx, task_id, 1, base)
        remote_runs.claim(tx, task_id, 1, "north")
        remote_runs.record_result(tx, task_id, 1, 1, "north", msgspec.to_builtins(result))
        return remote_runs.load(tx.connection, task_id, 1)

    remote = await world.store.write(receive)
    nowhere = BranchFetcher(context, str(tmp_path / "nowhere.git"))
    outcome = await take_over(context, nowhere, remote)
    assert (outcome.status, outcome.merged_commit) == ("done", None)
    assert world.steps(task_id)[-2:] == [("merge", "nothing"), ("done", "PASS")]
    assert await commit_of(Path(chain.path), "HEAD") == base

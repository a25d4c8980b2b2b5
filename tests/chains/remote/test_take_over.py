"""A run that changed nothing has no branch, and is taken over without a fetch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from chains.remote.played_worker import PASSES
from tasks.taskrun_world import World

from cockpit.chains.remote.merge_remote_work import take_over
from cockpit.chains.remote.message_types import RunResult, StepResult
from cockpit.store.chains import remote_runs
from cockpit.store.chains.remote_runs import RemoteRun
from cockpit.store.db.transaction import Tx
from cockpit.tasks.git import commit_of
from cockpit.tasks.merging import prepare_chain_branch


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.made(tmp_path)
    yield made
    made.store.close()


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
    outcome = await take_over(context, str(tmp_path / "nowhere.git"), remote)
    assert (outcome.status, outcome.merged_commit) == ("done", None)
    assert world.steps(task_id)[-2:] == [("merge", "nothing"), ("done", "PASS")]
    assert await commit_of(Path(chain.path), "HEAD") == base

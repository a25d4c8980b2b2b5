"""Sessions beside others: two chains at once, leases that are lost, proposals that wait."""

from __future__ import annotations

import asyncio

import pytest
from chains.batch_loop.coordinator_world import ALL_PASS, ChainWorld
from tasks.taskrun_world import edit, finish

from cockpit.chains.handover import WorkerLimits
from cockpit.core.errors import IllegalTransition
from cockpit.store.chains import task_leases, workers
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow

ASKS = edit("implementer", "a + b", "b + a") + finish(
    "implementer", "Turned round.", when='called = ["edit_file"]'
)
"""The implementer changes a file, which under the policy ``ask`` waits for a person."""


def approve(store: Store) -> None:
    """What a person does who is called: approve what waits."""

    def step(tx: Tx) -> None:
        (waits,) = proposals.select_pending(tx.connection)
        proposals.decide(
            tx, waits.proposal_id, "approved", by="person", shown_digest=waits.shown_digest
        )

    store.write_now(step)


async def test_two_chains_at_once_never_take_one_task(chained: ChainWorld) -> None:
    made = chained.tasks(3)
    first, second = chained.chain(), chained.chain()
    ended = await asyncio.gather(chained.session(first), chained.session(second))
    assert sum(one.tasks_done for one in ended) == 3
    assert chained.statuses() == dict.fromkeys(made, "done")
    taken = [name for row in chained.rows("batch.changed") for name in row.raw_detail()["task_ids"]]
    assert sorted(taken) == made
    steps = [row.raw_detail() for row in chained.rows("task.run.step")]
    begun = {step["task_id"] for step in steps if step["position"] == 1}
    assert sorted(begun) == made


async def test_what_meets_another_chains_task_waits_for_it(hurried: ChainWorld) -> None:
    theirs = hurried.world.task("Theirs", files=["same.py"])
    ours = hurried.world.task("Ours", files=["same.py"], task_type="spike")
    store = hurried.store
    token = store.write_now(lambda tx: task_leases.acquire(tx, theirs, "ch-9/s1"))
    hurried.stand(theirs, "in_progress")

    def finished() -> None:
        asyncio.get_running_loop().call_later(0.05, over)

    def over() -> None:
        hurried.stand(theirs, "done")
        store.write_now(lambda tx: task_leases.release(tx, theirs, token))

    hurried.on_line("The ready tasks touch", finished)
    ended = await hurried.session(hurried.chain())
    assert (ended.reason, ended.tasks_done) == ("empty", 1)
    assert hurried.said[0] == f"The ready tasks touch files that {theirs} changes; waiting."
    assert hurried.statuses() == {theirs: "done", ours: "done"}


async def test_a_task_whose_lease_is_lost_is_left_to_who_has_it(hurried: ChainWorld) -> None:
    task_id = hurried.world.task("Turn it round")
    store = hurried.store

    def steal(tx: Tx) -> None:
        tx.execute("DELETE FROM task_leases")
        task_leases.acquire(tx, task_id, "ch-9/s1")

    hurried.on_line(f"{task_id} waits for you", lambda: store.write_now(steal))
    chain = hurried.chain()
    task_context = hurried.task_context(chain, 1, ALL_PASS + ASKS, approve="trusted")
    ended = await hurried.session(chain, task_context=task_context)
    assert (ended.reason, ended.interrupted) == ("empty", 1)
    assert f"{task_id} is paused: another process claimed it" in hurried.said
    assert hurried.leases() == [task_id]
    assert hurried.statuses() == {task_id: "in_progress"}


async def test_a_session_that_was_given_up_for_dead_stops(hurried: ChainWorld) -> None:
    task_id = hurried.world.task("Turn it round")
    store = hurried.store
    chain = hurried.chain()
    hurried.on_line(
        f"{task_id} waits for you",
        lambda: store.write_now(lambda tx: workers.record_crash(tx, chain, 1, "silent")),
    )
    task_context = hurried.task_context(chain, 1, ALL_PASS + ASKS, approve="trusted")
    with pytest.raises(IllegalTransition, match="declared dead"):
        await hurried.session(chain, task_context=task_context)
    assert hurried.leases() == []
    # The next one takes the task up where it stood.
    hurried.on_line(f"{task_id} waits for you", lambda: approve(store))
    task_context = hurried.task_context(chain, 2, ALL_PASS + ASKS, approve="trusted")
    ended = await hurried.session(
        chain, 2, task_context=task_context, limits=WorkerLimits(batches=1)
    )
    assert any(line.startswith(f"Resuming {task_id} from: implementing") for line in hurried.said)
    assert ended.batches == 1


async def test_stopped_at_once_everything_stays_where_it_stands(hurried: ChainWorld) -> None:
    task_id = hurried.world.task("Turn it round")
    chain = hurried.chain()
    task_context = hurried.task_context(chain, 1, ALL_PASS + ASKS, approve="trusted")
    doing = asyncio.ensure_future(hurried.session(chain, task_context=task_context))
    hurried.on_line(f"{task_id} waits for you", doing.cancel)
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert hurried.leases() == []
    assert hurried.statuses() == {task_id: "in_progress"}
    (row,) = hurried.batches()
    assert (row["outcome"], row["interrupted"]) == ("interrupted", [task_id])

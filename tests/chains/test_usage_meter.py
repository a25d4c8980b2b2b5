"""What it costs to measure a worker that runs many tasks, and that it measures each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tasks.taskrun_world import World

from cockpit.backlog import service
from cockpit.chains.handover import MOST_READ, UsageMeter, WorkerLimits
from cockpit.store.chains import remote_runs
from cockpit.store.db.transaction import Tx

MANY = 3 * MOST_READ
TOKENS = 7


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.made(tmp_path)
    yield made
    made.store.close()


async def test_a_beat_reads_as_much_with_many_tasks_and_each_in_turn(world, monkeypatch):
    store = world.store
    meter = UsageMeter(store, WorkerLimits(), "ch-1", 1)

    def add(tx: Tx) -> list[str]:
        return [service.create_task(tx, f"Do {n}", by="test").task_id for n in range(MANY)]

    def use(tx: Tx, task_id: str) -> None:
        remote_runs.send(tx, task_id, 1, "0" * 40)
        tx.execute(
            "UPDATE remote_runs SET tokens=?, cost_usd=0.5 WHERE task_id=?", (TOKENS, task_id)
        )

    named = await store.write(add)
    for task_id in named:
        meter.start_task(task_id)
    for task_id in named:
        await store.write(lambda tx, task_id=task_id: use(tx, task_id))
    reads: list[object] = []
    read_now = store.read_now
    monkeypatch.setattr(store, "read_now", lambda read: (reads.append(read), read_now(read))[1])
    for beat in range(1, 4):
        usage = meter.measure()
        assert len(reads) == beat * MOST_READ
        assert (usage.tokens, usage.cost_usd) == (
            beat * MOST_READ * TOKENS,
            beat * MOST_READ * 0.5,
        )
    assert meter.measure().tokens == MANY * TOKENS
    assert meter.end_task(named[-1]) == (TOKENS, 0)
    assert meter.usage().tokens == MANY * TOKENS, "a task that ended counts once"

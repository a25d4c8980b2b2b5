"""The estimate of a task's run: made before its first step, and history when the task is done."""

from __future__ import annotations

import pytest
from tasks.taskrun_world import AT_ONCE, World, finish

from cockpit.loop.planner.read_session_estimate import describe_task_estimate
from cockpit.store.estimates import estimates

pytestmark = pytest.mark.slow


async def test_a_done_task_is_history_with_all_of_its_roles(world: World) -> None:
    task_id = world.task()
    ended = await world.do(AT_ONCE, task_id)
    made, *_ = [row for row in world.rows("estimate.made") if row.raw_detail()["unit"] == "task"]
    assert made.raw_detail()["subject"] == f"{task_id}/1"
    assert made.seq < world.rows("task.run.step")[0].seq
    row = world.store.read_now(lambda c: estimates.find(c, f"{task_id}/1"))
    assert row is not None and row.learned_seq is not None
    roles = world.store.read_now(
        lambda c: [
            each
            for role in ("implementer", "spec_reviewer", "quality_reviewer")
            for each in c.execute(
                "SELECT waves, tokens FROM estimates WHERE unit='session' AND kind LIKE ?",
                (f"%/{role}",),
            )
        ]
    )
    assert len(roles) == 3
    assert (row.waves, row.tokens) == tuple(sum(column) for column in zip(*roles, strict=True))
    assert row.tokens == ended.tokens
    words = world.store.read_now(lambda c: describe_task_estimate(c, task_id))
    assert words.endswith(f"took {row.waves} waves")
    blocked = world.task()
    await world.do(finish("implementer", "I cannot.", status="blocked"), blocked)
    row = world.store.read_now(lambda c: estimates.find(c, f"{blocked}/1"))
    assert row is not None and row.learned_seq is None, "a blocked task teaches nothing"

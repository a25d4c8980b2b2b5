"""What a person says of a task while it is worked on holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tasks.taskrun_world import AT_ONCE, World, git

from cockpit.backlog import service
from cockpit.store.db.transaction import Tx
from cockpit.tasks.task_context import TaskOutcome

pytestmark = pytest.mark.slow

Said = Callable[[Tx, str], object]


def blocked(tx: Tx, task_id: str, by: str = "person") -> object:
    return service.block(tx, task_id, "Not now", by=by)


def finished(tx: Tx, task_id: str) -> object:
    return service.set_status(tx, task_id, "done", by="person")


async def meanwhile(world: World, task_id: str, said: Said, *, before: int = 2) -> TaskOutcome:
    """Do the task; before its step of that number somebody says ``said``."""
    asked: list[int] = []

    def hands_over() -> bool:
        asked.append(1)
        if len(asked) == before:
            world.store.write_now(lambda tx: said(tx, task_id))
        return False

    return await world.do(AT_ONCE, task_id, must_hand_over=hands_over)


@pytest.mark.parametrize(("said", "status"), [(blocked, "blocked"), (finished, "done")])
async def test_it_is_put_down_before_its_next_step(world: World, said: Said, status: str) -> None:
    task_id = world.task()
    ended = await meanwhile(world, task_id, said)
    assert (ended.status, ended.reason) == ("interrupted", "set_aside")
    assert "while it was running" in ended.summary
    assert world.read(task_id).status == status
    assert world.steps(task_id) == [("implement", "done")]
    assert world.tree(task_id).status == "kept"
    assert "a + b" in world.show("calc.py", f"cockpit/{task_id}")
    assert "a - b" in world.show("calc.py")
    if status == "blocked":  # it goes on when the user says so
        assert world.read(task_id).blocker == "Not now"
        world.store.write_now(lambda tx: service.resolve_blocker(tx, task_id, by="person"))
        assert (await world.do(AT_ONCE, task_id)).status == "done"
        assert [step for step, _ in world.steps(task_id)].count("implement") == 1


async def test_what_an_agent_says_of_its_own_task_counts_for_nothing(world: World) -> None:
    task_id = world.task()
    ended = await meanwhile(world, task_id, lambda tx, name: blocked(tx, name, by="agent/t-1/s"))
    assert ended.status == "done"
    assert git(world.root, "log", "-1", "--format=%s", "cockpit/ch-1").startswith("Merge T-1")

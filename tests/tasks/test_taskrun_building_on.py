"""A task that builds on what another chain did has it, whatever branch that stands on."""

from __future__ import annotations

import pytest
from tasks.taskrun_world import PASSES, World, edit, finish, git

from cockpit.backlog import service
from cockpit.store.backlog import task_activity

pytestmark = pytest.mark.slow

SCENARIO = (
    edit("implementer", "a - b", "a + b", said="implementer of T-1:")
    + finish("implementer", "add adds.", when='called = ["edit_file"]', said="implementer of T-1:")
    + finish("implementer", "Looked at it.", said="implementer of T-2:")
    + edit("implementer", "a + b", "b + a", said="implementer of T-3:")
    + finish("implementer", "Turned.", when='called = ["edit_file"]', said="implementer of T-3:")
    + PASSES
)


def tasks_in_a_row(world: World) -> tuple[str, str, str]:
    """Three, of which each waits for the one before; the second changes nothing."""
    first = world.task()
    second = world.task("Look at it", task_type="spike")
    third = world.task("Turn it round")
    for task_id, other in ((second, first), (third, second)):
        world.store.write_now(
            lambda tx, a=task_id, b=other: service.add_dependency(tx, a, b, by="person")  # type: ignore[misc]  # a default keeps the loop's value
        )
    return first, second, third


async def test_what_an_earlier_chain_did_is_brought_in(world: World) -> None:
    """Also when the task's branch was cleaned away."""
    first, second, third = tasks_in_a_row(world)
    assert (await world.do(SCENARIO, first)).status == "done"
    git(world.root, "branch", "--quiet", "-D", f"cockpit/{first}")
    later = {"chain_id": "ch-2", "chain_branch": "cockpit/ch-2"}
    assert (await world.do(SCENARIO, second, **later)).status == "done"
    assert (await world.do(SCENARIO, third, **later)).status == "done"
    assert world.show("calc.py", "cockpit/ch-2").endswith("return b + a")
    told = git(world.root, "log", "--merges", "--format=%s", "cockpit/ch-2").splitlines()
    assert told == [
        "Merge T-3: Turn it round",
        "Bring in T-1, which T-2 builds on: Make add add",
        "Merge T-1: Make add add",
    ]


async def test_the_role_reads_the_handoffs_of_the_tasks_before(world: World) -> None:
    first, second, _ = tasks_in_a_row(world)
    await world.do(SCENARIO, first)
    await world.do(SCENARIO, second)
    told = git(world.root, "log", "--merges", "--format=%s", "cockpit/ch-1").splitlines()
    assert told == ["Merge T-1: Make add add"], "it was there already"
    rows = world.store.read_now(
        lambda connection: connection.execute(
            "SELECT normalized_json FROM observed_facts WHERE source_ref='task:opening'"
        ).fetchall()
    )
    (text,) = (text for (text,) in rows if f"You are the implementer of {second}" in text)
    summary = " ".join(world.handoff(first).summary.split())
    assert "add adds." in summary
    assert f"- {first} PASS: {summary} Files: calc.py." in text


async def test_what_was_taken_in_other_words_hinders_nobody(world: World) -> None:
    first, second, _ = tasks_in_a_row(world)
    await world.do(SCENARIO, first)
    (world.root / "calc.py").write_text(
        "def add(a, b):\n    return sum((a, b))\n", encoding="utf-8"
    )
    git(world.root, "commit", "--quiet", "-am", "Add, in my own words")
    later = {"chain_id": "ch-2", "chain_branch": "cockpit/ch-2"}
    assert (await world.do(SCENARIO, second, **later)).status == "done"
    assert "sum((a, b))" in world.show("calc.py", "cockpit/ch-2")
    noted = world.store.read_now(lambda found: task_activity.select_for_task(found, second))
    assert any(
        "could not merge T-1, which this task depends on" in row.description for row in noted
    )
    assert git(world.place.state / "worktrees" / "ch-2", "status", "--porcelain") == ""


async def test_a_branch_of_no_chain_goes_on_from_where_the_person_is(world: World) -> None:
    alone = {"chain_id": "", "chain_branch": "cockpit/work"}
    first, second, _ = tasks_in_a_row(world)
    await world.do(SCENARIO, first, **alone)
    (world.root / "new.py").write_text("x = 1\n", encoding="utf-8")
    git(world.root, "add", "new.py")
    git(world.root, "commit", "--quiet", "-m", "Mine")
    await world.do(SCENARIO, second, **alone)
    listed = git(world.root, "ls-tree", "--name-only", "cockpit/work").split()
    assert "new.py" not in listed, "the person has not taken what is on it"
    git(world.root, "merge", "--quiet", "cockpit/work")
    third = world.task("Look once more", task_type="spike")
    await world.do(finish("implementer", "Looked.") + PASSES, third, **alone)
    assert git(world.root, "rev-parse", "cockpit/work") == git(world.root, "rev-parse", "HEAD")
    assert world.tree(third).base_commit == git(world.root, "rev-parse", "HEAD")

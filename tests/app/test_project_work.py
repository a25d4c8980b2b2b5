"""The backlog as the screens have it says of tasks, stories and epics what the tables say."""

from __future__ import annotations

import random
from typing import Any

import pytest
import work_scenes
from app_scenes import current, follow_rows
from examples import examples

from cockpit.app.state.header import SessionState, header
from cockpit.app.state.work import COLUMNS, Work, number_in
from cockpit.app.state.work_pane import find_conflicts
from cockpit.backlog import service
from cockpit.core.errors import CockpitError
from cockpit.store.backlog import dependencies, tasks, work_queue
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES

pytestmark = pytest.mark.slow


def compare(store, work: Work) -> None:
    """Everything that is shown of tasks, stories and epics is what the tables say."""
    stored = store.read_now(lambda c: tasks.select(c, limit=10_000))
    stored += store.read_now(lambda c: tasks.select(c, status="archived", limit=10_000))
    assert {task.task_id for task in stored} == set(work.tasks)
    queued = {
        each.task_id: each for each in store.read_now(lambda c: work_queue.select(c, limit=999))
    }
    for task in stored:
        mine = work.tasks[task.task_id]
        assert (mine.status, mine.title, mine.type, mine.blocker, mine.rework) == (
            task.status, task.title, task.task_type, task.blocker, task.needs_rework,
        )  # fmt: skip
        assert (mine.story_id or None, work.priority(mine)) == (task.story_id, task.priority)
        assert mine.description == task.description
        needs = store.read_now(lambda c, t=task: dependencies.select_prerequisites(c, t.task_id))
        assert mine.needs == {each.depends_on_task_id: each.dependency_type for each in needs}
        if task.status == "todo":
            assert (task.task_id in work.ready) == queued[task.task_id].ready
            assert work.waits_for(mine) == sorted(queued[task.task_id].blocked_by, key=number_in)
    for story in store.read_now(lambda c: STORIES.select(c)):
        assert work.stories[story.story_id].status == story.status
    for epic in store.read_now(lambda c: EPICS.select(c)):
        assert (work.epics[epic.epic_id].status, work.epics[epic.epic_id].priority) == (
            epic.status, epic.priority,
        )  # fmt: skip


@pytest.mark.search
@pytest.mark.parametrize("seed", range(examples(2)))
def test_after_any_operations_the_screens_say_what_the_tables_say(still, seed):
    state = current(still.store)
    work_scenes.story(still.store)
    compare(still.store, follow_rows(still.store, state).work)
    choose = random.Random(seed)

    def task() -> str:
        return f"T-{choose.randint(1, 12)}"

    def operation(tx) -> None:
        match choose.randrange(8):
            case 0:
                service.set_status(
                    tx, task(), choose.choice([*COLUMNS, "archived"]), "why", by="agent"
                )
            case 1:
                service.block(tx, task(), "a reason", by="agent")
            case 2:
                service.resolve_blocker(tx, task(), by="agent")
            case 3:
                service.reopen(tx, task(), by="agent")
            case 4:
                how = choose.choice(dependencies.TYPES)
                service.add_dependency(tx, task(), task(), how, by="agent")
            case 5:
                service.remove_dependency(tx, task(), task(), by="agent")
            case 6:
                changes = {"title": f"other {choose.random()}", "story_id": choose.choice(["S-1", "S-3", ""]),
                           "needs_rework": choose.random() < 0.5}  # fmt: skip
                service.update_task(tx, task(), changes, by="agent")
            case _:
                service.update_epic(
                    tx, f"E-{choose.randint(1, 2)}", {"priority": f"P{choose.randint(0, 3)}"},
                    by="agent",
                )  # fmt: skip

    still.store.write_now(lambda tx: service.create_task(tx, "eleventh", by="agent"))
    for _ in range(120):
        try:
            still.store.write_now(operation)
        except CockpitError:
            continue  # not every step is possible everywhere; then nothing was written
        if choose.randrange(4) == 0:
            follow_rows(still.store, state)
    compare(still.store, follow_rows(still.store, state).work)
    compare(still.store, current(still.store).work)


def test_two_agents_that_change_one_file_are_told_apart():
    def session(name: str, **fields: Any) -> SessionState:
        return SessionState(name, title=name, agent="claude", branch="main", **fields)

    both = [
        session("first", changed_files=("a.py", "b.py")),
        session("second", changed_files=("b.py",)),
        session("third", changed_files=("c.py",)),
        session("over", changed_files=("b.py",), status="completed"),
        SessionState("other", branch="work", changed_files=("b.py",)),
    ]
    words = find_conflicts(both)
    assert words == {
        "first": "! b.py is also changed by second",
        "second": "! b.py is also changed by first",
    }


def test_the_model_of_an_agent_in_a_terminal_is_named() -> None:
    session = SessionState("s-1", agent="claude", model="runner:claude opus-5")
    assert header(session, pending=0, project="api", branch="main").model == "opus-5"
    session.model = "runner:claude"
    assert header(session, pending=0, project="api", branch="main").model == ""

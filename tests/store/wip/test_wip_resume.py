"""What a session that takes up a task reads first."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from store.wip.wip_world import CANARY

from cockpit.backlog import service
from cockpit.backlog.session_context import session_context
from cockpit.learn.resume_text import briefing, resume_line
from cockpit.store.backlog import handoffs, tasks


@pytest.mark.parametrize(
    ("wip", "line"),
    [
        (
            {"phase": "testing", "next_step": "fix failing test"},
            "Resuming T-42 from: testing phase, next: fix failing test",
        ),
        (
            {"phase": "the last phase", "test_results": {"failing_test": "a.py::test_b"}},
            "Resuming T-42 from: the last phase, next: fix a.py::test_b",
        ),
        (
            {"test_results": {"failed": 2}},
            "Resuming T-42 from: in progress, next: fix the failing tests",
        ),
        (
            {"test_results": {"outcome": "fail"}, "next_step": " "},
            "Resuming T-42 from: in progress, next: fix the failing tests",
        ),
        (
            {"uncommitted_changes": True, "files_modified": ["a", "b"]},
            "Resuming T-42 from: in progress, next: finish and commit 2 changed files",
        ),
        ({"phase": "coding"}, "Resuming T-42 from: coding phase, next: see its description"),
        (None, "Resuming T-42 from: in progress, next: begin"),
        (
            {"phase": "a\nb", "next_step": "x" * 300},
            f"Resuming T-42 from: a b phase, next: {'x' * 199}…",
        ),
    ],
)
def test_the_line_says_where_it_was_left_and_what_comes_next(wip, line) -> None:
    task = replace(tasks.new_draft("t"), task_id="T-42", status="in_progress", wip=wip)
    assert resume_line(task) == line


def test_a_briefing_has_what_is_to_be_done_and_of_long_lists_the_newest() -> None:
    wip: dict[str, Any] = {
        "phase": "testing",
        "decisions": [{"decision": f"number {n}"} for n in range(40)],
        "files_modified": [f"{n:03}.py" for n in range(60)],
    }
    task = replace(
        tasks.new_draft("Add the token"),
        task_id="T-42",
        description="For signing in.",
        acceptance_criteria="- it expires",
        context_summary="see S-1",
        handoff_notes=f"the key is {CANARY}",
        wip=wip,
    )
    told = briefing(task)
    assert told.startswith("Task T-42 (feature): Add the token\n\nFor signing in.")
    for words in ("Done when:\n- it expires", "see S-1", "Resuming T-42 from: testing phase"):
        assert words in told
    assert "number 39" in told
    assert "number 19" not in told
    assert "and 10 more" in told
    assert CANARY not in told
    assert briefing(tasks.new_draft("x")) == "Task  (feature): x"


def test_a_session_is_told_what_was_left_off_what_is_stuck_and_what_is_next(world):
    def step(tx):
        service.create_task(tx, "Show it", by="person")
        service.set_status(tx, "T-1", "in_progress", by="person")
        service.block(tx, "T-2", "no key", by="person")
        handoffs.set_handoff(tx, "T-2", "BLOCKED", "There is no key.", by="agent")

    world.store.write_now(step)
    world.update("T-1", phase="testing", next_step="expiry")
    told = world.store.read_now(session_context)
    assert told["resume"] == ["Resuming T-1 from: testing phase, next: expiry"]
    assert told["in_progress"] == [{"id": "T-1", "title": "Add the token", "status": "in_progress"}]
    assert [task["id"] for task in told["blocked"]] == ["T-2"]
    assert (told["review"], told["ready"]) == ([], 1)
    assert told["suggested_next"]["id"] == "T-3"
    assert "description" in told["suggested_next"]
    assert told["handoffs"] == [
        {"task_id": "T-2", "status": "BLOCKED", "summary": "There is no key."}
    ]
    full = world.store.read_now(lambda connection: session_context(connection, "full"))
    assert full["in_progress"][0]["wip"] == {"phase": "testing", "next_step": "expiry"}


def test_in_an_empty_backlog_there_is_nothing_to_suggest(world):
    for task_id in ("T-1", "T-2"):
        world.store.write_now(
            lambda tx, task_id=task_id: service.set_status(tx, task_id, "done", by="person")
        )
    told = world.store.read_now(session_context)
    assert (told["resume"], told["in_progress"], told["suggested_next"]) == ([], [], None)

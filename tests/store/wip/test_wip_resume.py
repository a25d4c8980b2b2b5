"""What a session that takes up a task reads first."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from store.wip.wip_world import CANARY

from cockpit.learn.resume_text import briefing, resume_line
from cockpit.store.backlog import tasks


@pytest.mark.parametrize(
    ("wip", "line"),
    [
        ({"phase": "testing", "next_step": "fix failing test"}, "testing phase, next: fix failing test"),
        ({"phase": "the last phase", "test_results": {"failing_test": "a.py::test_b"}},
         "the last phase, next: fix a.py::test_b"),
        ({"test_results": {"failed": 2}}, "in progress, next: fix the failing tests"),
        ({"test_results": {"outcome": "fail"}, "next_step": " "},
         "in progress, next: fix the failing tests"),
        ({"uncommitted_changes": True, "files_modified": ["a", "b"]},
         "in progress, next: finish and commit 2 changed files"),
        ({"phase": "coding"}, "coding phase, next: see its description"),
        (None, "in progress, next: begin"),
        ({"phase": "a\nb", "next_step": "x" * 300}, f"a b phase, next: {'x' * 199}…"),
    ],
)  # fmt: skip
def test_the_line_says_where_it_was_left_and_what_comes_next(wip, line) -> None:
    task = replace(tasks.new_draft("t"), task_id="T-42", status="in_progress", wip=wip)
    assert resume_line(task) == f"Resuming T-42 from: {line}"


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

"""What is told of a chain, from the rows of its journal."""

from __future__ import annotations

from typing import Any

from cockpit.chains.progress_lines import ProgressLines
from cockpit.core.canonical_json import canonical_json
from cockpit.store.journal import journal
from cockpit.store.journal.event_types import Action

STEP = {"run": 1, "ordinal": 1, "attempt": 1, "session_id": "", "summary": ""}


def told(story: ProgressLines, action: Action, session_id: str = "", **detail: Any) -> Any:
    row = journal.read_row(
        (1, "2026-01-01T12:00:00.000000Z", "", session_id, "", "", "", None, "engine", str(action),
         "ok", None, "", canonical_json(detail), "0" * 64)
    )  # fmt: skip
    return story.line_for(row)


def test_only_what_belongs_to_the_chain_is_told() -> None:
    story = ProgressLines("ch-2")
    step = {**STEP, "task_id": "T-1", "step": "spec_review", "outcome": ""}
    assert told(story, Action.TASK_RUN_STEP, **step, chain_id="ch-1") is None
    assert (
        told(story, Action.TASK_RUN_STEP, **step, chain_id="ch-2").line == "    T-1 · spec review"
    )
    assert told(story, Action.TASK_CHANGED, task_id="T-1") is None
    ended = {**step, "outcome": "FAIL", "summary": "No.\nReally not."}
    line = told(story, Action.TASK_RUN_STEP, **ended, chain_id="ch-2").line
    assert line == "    T-1 ✗ spec review: FAIL · No. Really not."


def test_a_person_is_called_once_for_each_proposal() -> None:
    story = ProgressLines("ch-1")
    progress = {"total": 1, "done": 0, "blocked": 0, "under_way": 0, "ready": 1}
    begun = {"chain_id": "ch-1", "ordinal": 1, "batch": 1, "size": 2, "progress": progress}
    told(story, Action.BATCH_CHANGED, **begun, task_ids=["T-1"])
    waits = {"for": "proposal", "why": ""}
    proposed = {"proposal_id": "p-1", "title": "create a.py"}
    for session_id, task_id in (("s-1", "T-1"), ("s-2", "T-2")):
        told(story, Action.SESSION_CREATED, session_id, task_id=task_id, role="spec_reviewer")
        told(story, Action.PROPOSAL_CREATED, session_id, **proposed)
    found = told(story, Action.SESSION_WAITING, "s-1", **waits)
    assert found.needs_user
    assert found.line == ("  ⏸ T-1 spec reviewer waits for you, create a.py: cockpit proposals p-1")
    assert told(story, Action.SESSION_WAITING, "s-1", **waits) is None
    # The other one is at work for somebody else.
    assert told(story, Action.SESSION_WAITING, "s-2", **waits) is None
    told(story, Action.SESSION_COMPLETED, "s-1")
    told(story, Action.PROPOSAL_CREATED, "s-1", **proposed)
    assert told(story, Action.SESSION_WAITING, "s-1", **waits) is None

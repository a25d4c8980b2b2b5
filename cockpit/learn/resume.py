"""Where a task was left, in one line and in a paragraph: what a session that takes it up reads first.

Source: seed 004, solution 2 ("Resume Flow").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.store.canonical import canonical_json
from cockpit.store.masking import mask
from cockpit.store.tasks import Task
from cockpit.store.wip import newest

_LONGEST = 200
_ENTRIES = 20
"""Decisions and errors that a session is told, the newest."""
_FILES = 50


def resume_line(task: Task) -> str:
    """``Resuming T-42 from: testing phase, next: fix failing test``, always one line."""
    wip = task.wip or {}
    phase = _line(wip.get("phase"))
    start = f"{phase} phase" if phase and not phase.endswith("phase") else phase
    return f"Resuming {task.task_id} from: {start or _status(task)}, next: {_next(wip)}"


def briefing(task: Task) -> str:
    """The task as a session is given it: what is to be done, when it is done, and where it was left."""
    parts = [f"Task {task.task_id} ({task.task_type}): {_line(task.title)}"]
    if task.description.strip():
        parts.append(task.description.strip())
    if task.acceptance_criteria.strip():
        parts.append(f"Done when:\n{task.acceptance_criteria.strip()}")
    if task.context_summary.strip():
        parts.append(f"Context:\n{task.context_summary.strip()}")
    if task.handoff_notes.strip():
        parts.append(f"Notes handed over:\n{task.handoff_notes.strip()}")
    if task.wip:
        parts += [resume_line(task), f"Work in progress: {canonical_json(_short(task.wip))}"]
    return mask("\n\n".join(parts))


def _next(wip: Mapping[str, Any]) -> str:
    if said := _line(wip.get("next_step")):
        return said
    results = wip.get("test_results") or {}
    if failing := _line(results.get("failing_test")):
        return f"fix {failing}"
    if results.get("outcome") == "fail" or results.get("failed"):
        return "fix the failing tests"
    if wip.get("uncommitted_changes"):
        count = len(wip.get("files_modified", ()))
        return f"finish and commit {count} changed file{'' if count == 1 else 's'}"
    return "see its description" if wip else "begin"


def _short(wip: Mapping[str, Any]) -> dict[str, Any]:
    told = newest(wip, _ENTRIES)
    files = told.get("files_modified", [])
    if len(files) > _FILES:
        told["files_modified"] = [*files[:_FILES], f"and {len(files) - _FILES} more"]
    return told


def _status(task: Task) -> str:
    return task.status.replace("_", " ")


def _line(value: object) -> str:
    words = " ".join(str(value or "").split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"

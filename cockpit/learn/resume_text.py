"""Where a task was paused, in one line and in a paragraph: the first text of a session that resumes it.

See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.core.fenced_text import fence_text
from cockpit.core.secrets import mask
from cockpit.learn.resume_line import format_resume_line, one_line
from cockpit.store.backlog.handoffs import Handoff
from cockpit.store.backlog.tasks import USER, Task
from cockpit.store.backlog.wip import keep_newest

_ENTRIES = 20
"""Decisions and errors that a session is told, the newest."""
_FILES = 50
"""Files of a task's progress that are listed."""
_SUMMARY = 2_000
"""Characters of the summary of a task before this one."""


def resume_line(task: Task) -> str:
    """Return ``Resuming T-42 from: testing phase, next: fix failing test``, always one line.

    Of a finished task the line says that nothing is left to resume.
    """
    if task.status in ("done", "archived"):
        return f"{task.task_id} is {task.status}: nothing is left to resume."
    return format_resume_line(task.task_id, task.status, task.wip or {})


def handoffs_text(before: Sequence[Handoff]) -> str:
    """Return the handoffs of the tasks before a task as a list; '' without any."""
    lines = []
    for handoff in before:
        files = ", ".join(handoff.files_changed[:_FILES])
        lines.append(
            f"- {handoff.task_id} {handoff.status}: {one_line(handoff.summary, _SUMMARY)}"
            + (f" Files: {files}." if files else "")
        )
    return "\n".join(lines)


def description_of(task: Task) -> str:
    """Return the task's description; fenced where an issue or an agent is its source, not the user."""
    description = task.description.strip()
    if not description or task.source in ("", USER):
        return description
    return f"Text of {one_line(task.source)}:\n\n{fence_text(description, 'markdown')}"


def briefing(task: Task, before: Sequence[Handoff] = ()) -> str:
    """Return the task's briefing: its work, its acceptance criteria, and where it was paused.

    ``before`` are the handoffs of the tasks that it waited for.
    """
    parts = [f"Task {task.task_id} ({task.task_type}): {one_line(task.title)}"]
    if description := description_of(task):
        parts.append(description)
    if task.acceptance_criteria.strip():
        parts.append(f"Done when:\n{task.acceptance_criteria.strip()}")
    if task.context_summary.strip():
        parts.append(f"Context:\n{task.context_summary.strip()}")
    if task.handoff_notes.strip():
        parts.append(f"Notes handed over:\n{fence_text(task.handoff_notes.strip())}")
    if before:
        parts.append(f"Handoffs of the tasks before this one:\n{fence_text(handoffs_text(before))}")
    if task.wip:
        parts += [resume_line(task), f"Work in progress: {canonical_json(_short(task.wip))}"]
    return mask("\n\n".join(parts))


def _short(wip: Mapping[str, Any]) -> dict[str, Any]:
    newest = keep_newest(wip, _ENTRIES)
    files = newest.get("files_modified", [])
    if len(files) > _FILES:
        newest["files_modified"] = [*files[:_FILES], f"and {len(files) - _FILES} more"]
    return newest

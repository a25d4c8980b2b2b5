"""The message of a task's run: the task with what it depends on, and how it is to be done.

See ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from cockpit.backlog.import_export import (
    dependency_line,
    epic_line,
    import_backlog,
    story_line,
)
from cockpit.backlog.work_settings import WorkSettings
from cockpit.chains.remote.message_types import MessageInvalid, RunMessage
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import convert
from cockpit.store.backlog import dependencies, handoffs, tasks
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES
from cockpit.store.backlog.tasks import Task
from cockpit.store.db.transaction import Tx
from cockpit.tasks.task_context import TaskContext

_FIELDS = (
    "title",
    "description",
    "acceptance_criteria",
    "task_type",
    "estimate_hours",
    "context_summary",
    "handoff_notes",
    "needs_rework",
)
_MOST_BEFORE = 50
_WORK = ("max_test_retries", "auto_fix", "test_command")
"""What of ``[work]`` goes along: the limits of a worker's own machine stay its own."""


def describe_run(
    connection: sqlite3.Connection,
    context: TaskContext,
    task_id: str,
    run: int,
    base_commit: str,
    branch: str,
) -> RunMessage:
    """Return the message for a run of the task from ``base_commit``, which ``branch`` holds."""
    task = tasks.load(connection, task_id)
    waited_for = [
        each
        for each in dependencies.select_prerequisites(connection, task_id)[:_MOST_BEFORE]
        if each.dependency_type != "relates_to"
    ]
    lines: list[dict[str, Any]] = []
    if task.epic_id:
        lines.append(epic_line(EPICS.load(connection, task.epic_id)))
    if task.story_id:
        lines.append(story_line(STORIES.load(connection, task.story_id)))
    lines += [
        {"kind": "task", "id": before.task_id, "title": before.title, "status": "done"}
        for before in tasks.load_many(connection, [each.depends_on_task_id for each in waited_for])
    ]
    lines.append(_task_line(task))
    lines += map(dependency_line, waited_for)
    return RunMessage(
        task_id=task_id,
        run=run,
        chain_id=context.chain_id,
        base_branch=branch,
        base_commit=base_commit,
        approve=context.approve,
        model=context.model,
        runner=context.runner,
        work={name: getattr(context.work, name) for name in _WORK},
        backlog=tuple(lines),
        handoffs=tuple(
            {
                "task_id": handoff.task_id,
                "status": handoff.status,
                "summary": handoff.summary,
                "files": list(handoff.files_changed),
            }
            for handoff in handoffs.select_before(connection, task_id)
        ),
    )


def _task_line(task: Task) -> dict[str, Any]:
    return {
        "kind": "task",
        "id": task.task_id,
        "story": task.story_id,
        **{name: getattr(task, name) for name in _FIELDS},
        "packages": list(task.packages),
        "files": list(task.files),
    }


def import_run(tx: Tx, message: RunMessage) -> None:
    """Put the task and what it depends on into a worker's store. Raises :class:`MessageInvalid`."""
    by = "coordinator"
    try:
        import_backlog(tx, list(enumerate(map(dict, message.backlog), start=1)), by=by)
        for handoff in message.handoffs:
            handoffs.set_handoff(
                tx,
                str(handoff["task_id"]),
                str(handoff["status"]),
                str(handoff["summary"]),
                [str(path) for path in handoff["files"]],
                by=by,
            )
    except (CockpitError, KeyError, TypeError) as error:
        raise MessageInvalid(f"The run of {message.task_id} cannot be read: {error}") from error


def read_work(message: RunMessage, own: WorkSettings) -> WorkSettings:
    """Return the ``[work]`` settings of a run. Raises :class:`MessageInvalid`."""
    given = {name: message.work[name] for name in _WORK if name in message.work}
    try:
        return convert({**msgspec.to_builtins(own), **given}, WorkSettings)
    except msgspec.ValidationError as error:
        raise MessageInvalid(f"The run of {message.task_id} has bad settings: {error}") from error

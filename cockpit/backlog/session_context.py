"""The work context of a new session: tasks in progress, blocked tasks, the next task, and handoffs.

See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from cockpit.backlog.response_modes import render_task
from cockpit.learn.resume_text import briefing, resume_line
from cockpit.store.backlog import handoffs, tasks, work_queue

__all__ = ["briefing", "resume_line", "session_context"]

_OPEN = 20
"""Tasks of one status that are named, the oldest first."""
_HANDOFFS = 5
_MOST_BEFORE = 20


def session_context(connection: sqlite3.Connection, fields: str = "minimal") -> dict[str, Any]:
    """Return the answer of the tool ``get_session_context``.

    ``resume`` has a line for every task in progress with saved progress; ``fields`` is the response
    mode of the tasks in progress, in review and blocked; ``suggested_next`` is always standard.
    ``handoffs`` has those of the tasks that tasks in progress and the next task waited for, then the
    newest.
    """
    under_way = tasks.select(connection, status="in_progress", limit=_OPEN)
    body: dict[str, Any] = {
        "resume": [resume_line(task) for task in under_way if task.wip],
        "in_progress": [render_task(task, fields) for task in under_way],
    }
    for status in ("review", "blocked"):
        rows = tasks.select(connection, status=status, limit=_OPEN)
        body[status] = [render_task(task, fields) for task in rows]
    following = work_queue.next_batch(connection, 1)
    body["ready"] = work_queue.count_ready(connection)
    body["suggested_next"] = (
        render_task(tasks.load(connection, following[0].task_id), "standard") if following else None
    )
    # Those that the work of now builds on come first, however old they are.
    started = [task.task_id for task in under_way[:_HANDOFFS]] + [
        task.task_id for task in following
    ]
    before = [each for task_id in started for each in handoffs.select_before(connection, task_id)]
    recent = handoffs.select_recent(connection, _HANDOFFS)
    listed = {handoff.task_id: handoff for handoff in (*before[-_MOST_BEFORE:], *recent)}
    body["handoffs"] = [
        {"task_id": handoff.task_id, **handoff.brief()} for handoff in listed.values()
    ]
    return body

"""Task rows as plain dictionaries, for hook processes.

An agent waits for a hook call to end, and loading :mod:`cockpit.store.backlog.tasks` would take
most of that time. Specified in ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import json
import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NAMES = (
    "task_id",
    "status",
    "title",
    "acceptance_criteria",
    "context_summary",
    "handoff_notes",
    "blocker",
    "wip",
)
_SELECT = (
    "SELECT task_id, status, title, acceptance_criteria, context_summary, handoff_notes, blocker,"
    " coalesce(work_in_progress, '{}') FROM tasks"
)


def load(connection: sqlite3.Connection, task_id: str) -> dict[str, Any] | None:
    """Read a task's columns by name, with ``wip`` decoded; None when there is no such task."""
    row = connection.execute(f"{_SELECT} WHERE task_id=?", (task_id,)).fetchone()
    return None if row is None else _read(row)


def select_in_progress(connection: sqlite3.Connection, most: int) -> list[dict[str, Any]]:
    """Read the tasks in progress, the oldest first."""
    rows = connection.execute(
        f"{_SELECT} WHERE status='in_progress' ORDER BY number LIMIT ?", (most,)
    )
    return [_read(row) for row in rows]


def select_ready(connection: sqlite3.Connection, most: int) -> list[tuple[str, str]]:
    """Read (id, title) of the tasks to start next.

    The same tasks as :func:`cockpit.store.backlog.work_queue.next_batch` returns.
    """
    rows = connection.execute(
        "SELECT q.task_id, t.title FROM work_queue q JOIN tasks t USING(task_id)"
        " WHERE batch_group=1 AND batch_group>0 ORDER BY priority_score DESC, q.number LIMIT ?",
        (most,),
    )
    return [(str(task_id), str(title)) for task_id, title in rows]


def select_handoffs_before(
    connection: sqlite3.Connection, task_id: str, most: int
) -> list[tuple[str, str, str]]:
    """Read (task, status, summary) of the handoffs of the tasks that the task waited for, by number.

    The same handoffs as :func:`cockpit.store.backlog.handoffs.select_before` returns, archived ones too.
    """
    rows = connection.execute(
        "SELECT d.depends_on_task_id, coalesce(h.status, json_extract(j.detail_json, '$.status')),"
        " coalesce(h.summary, json_extract(j.detail_json, '$.summary'))"
        " FROM task_dependencies d JOIN tasks o ON o.task_id=d.depends_on_task_id"
        " LEFT JOIN task_handoffs h ON h.task_id=d.depends_on_task_id"
        " LEFT JOIN journal j ON h.task_id IS NULL AND j.seq=(SELECT max(seq) FROM journal WHERE"
        " action='handoff.archived' AND json_extract(detail_json, '$.task_id')=d.depends_on_task_id)"
        " WHERE d.task_id=? AND d.dependency_type<>'relates_to'"
        " AND (h.task_id IS NOT NULL OR j.seq IS NOT NULL) ORDER BY o.number LIMIT ?",
        (task_id, most),
    )
    return [(str(before), str(status), str(summary)) for before, status, summary in rows]


def _read(row: tuple[Any, ...]) -> dict[str, Any]:
    task = dict(zip(_NAMES, row, strict=True))
    task["wip"] = json.loads(task["wip"])
    return task

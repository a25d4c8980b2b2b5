"""How tasks stand, as plain rows: for processes that cannot wait for :mod:`cockpit.store.backlog.tasks`."""

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
    """That task's columns by name, ``wip`` read; None where there is none."""
    row = connection.execute(f"{_SELECT} WHERE task_id=?", (task_id,)).fetchone()
    return None if row is None else _read(row)


def select_in_progress(connection: sqlite3.Connection, most: int) -> list[dict[str, Any]]:
    """The tasks in progress, the oldest first."""
    rows = connection.execute(
        f"{_SELECT} WHERE status='in_progress' ORDER BY number LIMIT ?", (most,)
    )
    return [_read(row) for row in rows]


def select_ready(connection: sqlite3.Connection, most: int) -> list[tuple[str, str]]:
    """(id, title) of what can be begun now, as :func:`cockpit.store.backlog.work_queue.next_batch` has it."""
    rows = connection.execute(
        "SELECT q.task_id, t.title FROM work_queue q JOIN tasks t USING(task_id)"
        " WHERE batch_group=1 AND batch_group>0 ORDER BY priority_score DESC, q.number LIMIT ?",
        (most,),
    )
    return [(str(task_id), str(title)) for task_id, title in rows]


def _read(row: tuple[Any, ...]) -> dict[str, Any]:
    task = dict(zip(_NAMES, row, strict=True))
    task["wip"] = json.loads(task["wip"])
    return task

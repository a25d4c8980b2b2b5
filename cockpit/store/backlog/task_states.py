"""Tasks with what a board shows of each: counted, the few at work, and all of them part by part."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec

from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row, newest_rows

PART = 500
"""Tasks that are read at a time."""
_ARCHIVED_HANDOFFS = 50


class StoredTask(msgspec.Struct, frozen=True):
    """One task, its handoff and what it depends on. JSON columns are as they are stored."""

    task_id: str
    number: int
    title: str
    description: str
    criteria: str
    type: str
    status: str
    story_id: str
    blocker: str
    rework: bool
    progress: int
    wip_json: str
    wip_at: str
    done_at: str
    ready: bool
    left: bool
    """Whether the chain that worked on it last has ended."""
    handoff: tuple[str, str, str, bool] | None
    """Status, summary, files as JSON, and whether its details are gone."""
    needs: tuple[tuple[str, str], ...]
    """What it depends on, and how."""


_SELECT = (
    "SELECT t.task_id, t.number, t.title, t.description, t.acceptance_criteria, t.task_type, t.status,"
    " coalesce(t.story_id, ''), t.blocker, t.needs_rework, t.progress_percent,"
    " coalesce(t.work_in_progress, ''), coalesce(t.wip_updated_at, ''), coalesce(t.done_at, ''),"
    " coalesce(q.ready, 0),"
    " coalesce((SELECT c.status NOT IN ('running','draining') AND r.step NOT IN ('done','blocked')"
    "  FROM task_runs r JOIN chains c ON c.chain_id=r.chain_id WHERE r.task_id=t.task_id"
    "  ORDER BY r.run DESC, r.position DESC LIMIT 1), 0),"
    " h.status, h.summary, h.files_changed, h.compacted_at IS NOT NULL"
    " FROM tasks t LEFT JOIN work_queue q ON q.task_id=t.task_id"
    " LEFT JOIN task_handoffs h ON h.task_id=t.task_id"
)
_NEEDS = "SELECT depends_on_task_id, dependency_type FROM task_dependencies WHERE task_id=?"


def count_tasks(connection: sqlite3.Connection, statuses: Sequence[str]) -> dict[str, int]:
    """Return how many tasks are in each of ``statuses``."""
    sql = "SELECT count(*) FROM tasks WHERE status=?"
    return {status: connection.execute(sql, (status,)).fetchone()[0] for status in statuses}


def count_ready(connection: sqlite3.Connection) -> int:
    """Return how many tasks wait for no other task."""
    row = connection.execute("SELECT count(*) FROM work_queue WHERE ready=1").fetchone()
    return int(row[0])


def select_part(connection: sqlite3.Connection, after: int) -> list[StoredTask]:
    """Read the next :data:`PART` tasks by number, archived ones too."""
    rows = connection.execute(
        f"{_SELECT} WHERE t.number>? ORDER BY t.number LIMIT {PART}", (after,)
    )
    return [_read(connection, row) for row in rows]


def select_named(connection: sqlite3.Connection, task_ids: Sequence[str]) -> list[StoredTask]:
    """Read the tasks of these ids; unknown ids are left out."""
    rows = [
        row
        for task_id in task_ids
        for row in connection.execute(f"{_SELECT} WHERE t.task_id=?", (task_id,))
    ]
    return [_read(connection, row) for row in rows]


def archived_handoffs(connection: sqlite3.Connection, limit: int = _ARCHIVED_HANDOFFS) -> list[Row]:
    """Return the newest rows that keep the handoff of a task whose epic is done."""
    return newest_rows(connection, (Action.HANDOFF_ARCHIVED,), limit)


def _read(connection: sqlite3.Connection, row: tuple[Any, ...]) -> StoredTask:
    *columns, status, summary, files, compacted = row
    for place in (9, 14, 15):
        columns[place] = bool(columns[place])
    handoff = None if status is None else (status, summary, files, bool(compacted))
    needs = tuple(connection.execute(_NEEDS, (columns[0],)))
    columns += [handoff, needs]
    return StoredTask(*columns)

"""Activity and failures of a task.

Specified in ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from cockpit.core.secrets import mask
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.backlog import TaskActivity

ACTIVITY_TYPES = ("note", "file_change", "decision", "progress")
"""Types that users and agents may report; :func:`replace_with_summary` writes ``summary``."""
FAILURE_TYPES = ("spec", "quality", "implementation")


class Activity(Struct, frozen=True):
    """One row of ``task_activity``."""

    activity_id: int
    task_id: str
    activity_type: str
    description: str
    actor: str
    created_at: str


class Failure(Struct, frozen=True):
    """One row of ``task_failures``."""

    failure_id: int
    task_id: str
    failure_type: str
    reason: str
    attempt: int
    """Counts from 1."""
    actor: str
    created_at: str


def add(tx: Tx, task_id: str, activity_type: str, description: str, *, by: str) -> Activity:
    """Add a row of activity to an existing task and journal ``task.activity``."""
    row = tx.execute(
        "INSERT INTO task_activity(task_id, activity_type, description, actor, created_at)"
        " VALUES (?,?,?,?,?)"
        " RETURNING activity_id, task_id, activity_type, description, actor, created_at",
        (task_id, activity_type, mask(description), by, tx.now()),
    ).fetchone()
    activity = Activity(*row)
    tx.journal(
        TaskActivity(
            task_id=task_id, activity_type=activity_type, description=activity.description
        ),
        actor=by,
    )
    return activity


def select_for_task(
    connection: sqlite3.Connection, task_id: str, limit: int = 50
) -> list[Activity]:
    """Read the task's activity, the newest first."""
    rows = connection.execute(
        "SELECT activity_id, task_id, activity_type, description, actor, created_at"
        " FROM task_activity WHERE task_id=? ORDER BY activity_id DESC LIMIT ?",
        (task_id, limit),
    )
    return [Activity(*row) for row in rows]


def replace_with_summary(tx: Tx, task_id: str, summary: str, *, by: str) -> int:
    """Replace the task's activity by one row of type ``summary``.

    Returns how many rows it replaced; the journal keeps each of them.
    """
    gone = tx.execute("DELETE FROM task_activity WHERE task_id=?", (task_id,)).rowcount
    add(tx, task_id, "summary", summary, by=by)
    return int(gone)


def record_failure(
    tx: Tx, task_id: str, failure_type: str, reason: str, attempt: int | None = None, *, by: str
) -> Failure:
    """Store that an attempt at the task failed and journal it.

    ``attempt`` defaults to the one after the last.
    """
    (last,) = tx.execute(
        "SELECT coalesce(max(attempt), 0) FROM task_failures WHERE task_id=?", (task_id,)
    ).fetchone()
    row = tx.execute(
        "INSERT INTO task_failures(task_id, failure_type, reason, attempt, actor, created_at)"
        " VALUES (?,?,?,?,?,?)"
        " RETURNING failure_id, task_id, failure_type, reason, attempt, actor, created_at",
        (task_id, failure_type, mask(reason), attempt or last + 1, by, tx.now()),
    ).fetchone()
    failure = Failure(*row)
    tx.journal(
        TaskActivity(task_id=task_id, activity_type="failed", description=failure.reason),
        actor=by,
    )
    return failure


def select_failures(connection: sqlite3.Connection, task_id: str) -> list[Failure]:
    """Read the failures of a task, the newest first."""
    rows = connection.execute(
        "SELECT failure_id, task_id, failure_type, reason, attempt, actor, created_at"
        " FROM task_failures WHERE task_id=? ORDER BY failure_id DESC",
        (task_id,),
    )
    return [Failure(*row) for row in rows]

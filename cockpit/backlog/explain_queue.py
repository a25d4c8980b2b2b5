"""Explanations of the work queue: the parts of a score, dependencies, and conflicting tasks."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from cockpit.store.backlog import tasks, work_queue
from cockpit.store.backlog.batch_groups import find_conflict
from cockpit.store.backlog.work_queue import Queued


def explain_rows(connection: sqlite3.Connection, rows: Sequence[Queued]) -> list[dict[str, Any]]:
    """Return each row as a JSON value with its reasons, and these as text in ``why``."""
    busy = work_queue.select_running(connection)
    first = work_queue.select(connection, ready=True, limit=work_queue.GROUPED)
    return [_explained(connection, row, busy, first) for row in rows]


def _explained(
    connection: sqlite3.Connection, row: Queued, busy: Sequence[Queued], first: Sequence[Queued]
) -> dict[str, Any]:
    held = _held_by(row, busy, first) if row.ready and row.batch_group != 1 else None
    words = [_standing(connection, row)] if not row.ready else []
    lender = work_queue.find_lender(connection, row)
    words.append(
        f"priority {row.priority}"
        if lender is None
        else f"priority {row.queue_priority} of {lender}, which waits for it"
    )
    if row.unblocks:
        words.append(f"unblocks {row.unblocks}")
    words.append(f"number {row.number}")
    if row.ready:
        words.append("can begin now" if row.batch_group == 1 else _later(row, held))
    return {
        "id": row.task_id,
        "title": row.title,
        "status": row.status,
        "ready": row.ready,
        "batch_group": row.batch_group,
        "score": row.priority_score,
        "parts": {
            "priority": row.queue_priority,
            "priority_from": lender,
            "unblocks": row.unblocks,
            "number": row.number,
        },
        "blocked_by": list(row.blocked_by),
        "touches": list(row.claims),
        "held_by": held and {"id": held[0], "path": held[1]},
        "why": "; ".join(words),
    }


def _standing(connection: sqlite3.Connection, row: Queued) -> str:
    if row.blocked_by:
        return f"waits for {', '.join(row.blocked_by)}"
    if row.status == "blocked":
        return f"blocked: {tasks.load(connection, row.task_id).blocker or 'no reason given'}"
    return f"is {row.status.replace('_', ' ')}"


def _held_by(
    row: Queued, busy: Sequence[Queued], first: Sequence[Queued]
) -> tuple[str, str] | None:
    """The first task before it, running or in group 1, that touches what it touches."""
    for other in (*busy, *(queued for queued in first if queued.batch_group == 1)):
        if (
            other.task_id != row.task_id
            and (path := find_conflict(row.claims, other.claims)) is not None
        ):
            return other.task_id, path
    return None


def _later(row: Queued, held: tuple[str, str] | None) -> str:
    if held is not None:
        return f"after {held[0]}, which touches {held[1] or 'everything'} as well"
    if row.batch_group == 0:
        return "further down than groups are made"
    return "after a task that it depends on through others"

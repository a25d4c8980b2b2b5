"""Epics: what stories add up to, with the priority that decides what comes first."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cockpit.core.secrets import mask
from cockpit.store.backlog.backlog_ids import EPIC, next_number, read_id, unknown, written
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action

PRIORITIES = ("P0", "P1", "P2", "P3")
DEFAULT_PRIORITY = "P2"
"""Also the priority of a task that belongs to no epic."""

STATUSES = ("todo", "in_progress", "review", "done", "blocked", "archived")
"""How an epic, a story or a task can stand."""
SETTLED = ("done", "archived")
"""Nothing is left to do."""


@dataclass(frozen=True, slots=True)
class Epic:
    """One row of ``epics``."""

    epic_id: str
    number: int
    title: str
    description: str
    priority: str
    status: str
    source: str
    created_at: str
    updated_at: str
    done_at: str | None


_COLUMNS = (
    "epic_id, number, title, description, priority, status, source, created_at, updated_at, done_at"
)


def load(connection: sqlite3.Connection, epic_id: str) -> Epic:
    """The epic of that id. Raises :class:`~cockpit.core.errors.NotFound`."""
    named = read_id(EPIC, epic_id)
    row = connection.execute(f"SELECT {_COLUMNS} FROM epics WHERE epic_id=?", (named,)).fetchone()  # noqa: S608
    if row is None:
        raise unknown(EPIC, named)
    return Epic(*row)


def listed(
    connection: sqlite3.Connection,
    *,
    status: str | None = None,
    priority: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> list[Epic]:
    """Epics, the most urgent first; archived ones only when asked for."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM epics WHERE (CASE WHEN :status IS NULL THEN status <> 'archived'"  # noqa: S608
        " ELSE status=:status END) AND (:priority IS NULL OR priority=:priority)"
        " ORDER BY priority, number LIMIT :limit OFFSET :offset",
        {"status": status, "priority": priority, "limit": limit, "offset": offset},
    )
    return [Epic(*row) for row in found]


def insert(
    tx: Tx,
    title: str,
    *,
    description: str = "",
    priority: str = DEFAULT_PRIORITY,
    source: str = "",
    number: int | None = None,
    by: str,
) -> Epic:
    """A new epic, journalled as ``epic.created``; ``number`` is for an import that keeps ids."""
    own = number or next_number(tx, EPIC)
    now = tx.now()
    made = Epic(
        written(EPIC, own),
        own,
        mask(title),
        mask(description),
        priority,
        "todo",
        source,
        now,
        now,
        None,
    )
    tx.execute(
        f"INSERT INTO epics({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)",  # noqa: S608
        (*_values(made), made.created_at, made.updated_at, made.done_at),
    )
    tx.journal(Action.EPIC_CREATED, actor=by, detail=detail(made))
    return made


def change(tx: Tx, epic: Epic, changes: Mapping[str, Any], *, by: str) -> Epic:
    """``epic`` with these fields changed, journalled as ``epic.changed``; unchanged, nothing is."""
    now = tx.now()
    sound: dict[str, Any] = {
        name: mask(value) if name in ("title", "description") else value
        for name, value in changes.items()
    }
    made = replace(epic, **sound)
    if made == epic:
        return epic
    done_at = (epic.done_at or now) if made.status == "done" else None
    made = replace(made, updated_at=now, done_at=done_at)
    tx.execute(
        "UPDATE epics SET title=?, description=?, priority=?, status=?, source=?, updated_at=?,"
        " done_at=? WHERE epic_id=?",
        (*_values(made)[2:], now, done_at, epic.epic_id),
    )
    tx.journal(Action.EPIC_CHANGED, actor=by, detail=detail(made))
    return made


def detail(epic: Epic) -> dict[str, Any]:
    """What the journal says of an epic, and what a view of it is drawn from."""
    return {
        "epic_id": epic.epic_id,
        "title": epic.title,
        "status": epic.status,
        "description": epic.description,
        "priority": epic.priority,
        "source": epic.source,
    }


def _values(epic: Epic) -> tuple[Any, ...]:
    return (
        epic.epic_id,
        epic.number,
        epic.title,
        epic.description,
        epic.priority,
        epic.status,
        epic.source,
    )

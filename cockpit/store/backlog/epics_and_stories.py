"""Epics and stories: tasks add up to a story, stories add up to an epic.

Both are rows of the same shape, so one implementation serves both: :data:`EPICS` and
:data:`STORIES` differ in their record, their own columns and their journal events. Specified in
``docs/reference/backlog.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.secrets import mask
from cockpit.store.backlog.backlog_ids import (
    EPIC,
    STORY,
    Kind,
    format_id,
    next_number,
    read_id,
    unknown_id,
)
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.backlog import BacklogChanged
from cockpit.store.journal.details.detail import record_row

PRIORITIES = ("P0", "P1", "P2", "P3")
"""Priorities of an epic, the most urgent first."""
DEFAULT_PRIORITY = "P2"
"""Also the priority of a task that belongs to no epic."""

STATUSES = ("todo", "in_progress", "review", "done", "blocked", "archived")
"""Every status of an epic, a story or a task."""
SETTLED = ("done", "archived")
"""The statuses in which no work is left."""


class _Row(Struct, frozen=True, kw_only=True):
    """The columns that epics and stories have in common."""

    number: int
    title: str
    description: str
    status: str
    created_at: str
    updated_at: str
    done_at: str | None


class Epic(_Row, frozen=True, kw_only=True):
    """One row of ``epics``."""

    epic_id: str
    priority: str = DEFAULT_PRIORITY
    """One of :data:`PRIORITIES`; it orders the work queue."""
    source: str = ""
    """Who or which import wrote the epic."""


class Story(_Row, frozen=True, kw_only=True):
    """One row of ``stories``."""

    story_id: str
    epic_id: str | None = None
    """None for a story that belongs to no epic."""


T = TypeVar("T", Epic, Story)

_MASKED = ("title", "description")
"""Free text: secrets in it are masked before it is stored."""


class Parents(Struct, Generic[T], frozen=True):
    """Reads and writes the rows of one table: all epics, or all stories."""

    kind: Kind
    record: type[T]
    order: str
    """Columns that a list is sorted by."""

    @property
    def key(self) -> str:
        """The column that holds the id."""
        return f"{self.kind.word}_id"

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column of the table; they are the fields of the record."""
        return self.record.__struct_fields__

    def id_of(self, row: T) -> str:
        """The id of ``row``."""
        return str(getattr(row, self.key))

    def load(self, connection: sqlite3.Connection, identity: str) -> T:
        """Read one row; ``identity`` may be written as users type it (``e-1``, ``1``).

        Raises :class:`~cockpit.core.errors.NotFound`.
        """
        full_id = read_id(self.kind, identity)
        rows = self._query(connection, f"WHERE {self.key}=?", (full_id,))
        if not rows:
            raise unknown_id(self.kind, full_id)
        return rows[0]

    def select(
        self,
        connection: sqlite3.Connection,
        *,
        status: str | None = None,
        limit: int = 50,
        offset: int = 0,
        **equal: str | None,
    ) -> list[T]:
        """Read rows in order: epics the most urgent first, stories as they were written.

        ``equal`` names columns and the value that they must have (None: any). Archived rows are
        left out unless ``status`` asks for them; a ``limit`` of -1 reads all.
        """
        where = "WHERE (CASE WHEN ? IS NULL THEN status <> 'archived' ELSE status=? END)"
        values: list[Any] = [status, status]
        for column, value in equal.items():
            if value is not None:
                where += f" AND {column}=?"
                values.append(read_id(EPIC, value) if column == "epic_id" else value)
        where += f" ORDER BY {self.order} LIMIT ? OFFSET ?"
        return self._query(connection, where, (*values, limit, offset))

    def select_after(self, connection: sqlite3.Connection, number: int, limit: int) -> list[T]:
        """Read the next rows by number, archived ones too."""
        return self._query(connection, "WHERE number>? ORDER BY number LIMIT ?", (number, limit))

    def select_named(self, connection: sqlite3.Connection, identity: str) -> list[T]:
        """Read the row of that exact id; no row for an unknown id."""
        return self._query(connection, f"WHERE {self.key}=?", (identity,))

    def insert(
        self,
        tx: Tx,
        title: str,
        *,
        description: str = "",
        number: int | None = None,
        by: str,
        **own: Any,
    ) -> T:
        """Write a new row and journal it; ``own`` are the columns that only this kind has.

        ``number`` is for an import that keeps ids; otherwise the next free one is used.
        """
        chosen, now = number or next_number(tx, self.kind), tx.now()
        row = self.record(
            **{self.key: format_id(self.kind, chosen)},
            number=chosen,
            title=mask(title),
            description=mask(description),
            status="todo",
            created_at=now,
            updated_at=now,
            done_at=None,
            **own,
        )
        marks = ",".join("?" * len(self.columns))
        tx.execute(
            f"INSERT INTO {self.kind.table}({','.join(self.columns)}) VALUES ({marks})",  # noqa: S608
            [getattr(row, column) for column in self.columns],
        )
        tx.journal(record_row(BacklogChanged, row), actor=by)
        return row

    def change(self, tx: Tx, row: T, changes: Mapping[str, Any], *, by: str) -> T:
        """Write ``row`` with ``changes`` applied and journal it; without a difference do nothing."""
        values: dict[str, Any] = {
            name: mask(value) if name in _MASKED else value for name, value in changes.items()
        }
        changed: T = replace(row, **values)
        if changed == row:
            return row
        now = tx.now()
        done_at = (row.done_at or now) if changed.status == "done" else None
        changed = replace(changed, updated_at=now, done_at=done_at)
        tx.execute(
            f"UPDATE {self.kind.table} SET {', '.join(f'{name}=?' for name in self.columns)}"  # noqa: S608
            f" WHERE {self.key}=?",
            [*(getattr(changed, name) for name in self.columns), self.id_of(row)],
        )
        tx.journal(record_row(BacklogChanged, changed), actor=by)
        return changed

    def _query(self, connection: sqlite3.Connection, clauses: str, values: Any) -> list[T]:
        columns = self.columns
        rows = connection.execute(
            f"SELECT {','.join(columns)} FROM {self.kind.table} {clauses}",  # noqa: S608
            values,
        )
        return [self.record(**dict(zip(columns, row, strict=True))) for row in rows]


EPICS = Parents(EPIC, Epic, "priority, number")
STORIES = Parents(STORY, Story, "number")

"""Seals: what the rows of every table were, digest by digest, in the rows of the journal.

Whatever statement writes a row of a sealed table through cockpit's writer, a temporary trigger of that
connection reports the row. At the end of the transaction its digest is written with the journal's last row,
and chained with it, so that a table can be compared with the journal, row by row
(:mod:`cockpit.store.journal.verify_tables`). A program that has the file but not the triggers writes rows
without seals. Specified in ``docs/reference/journal.md``, seals.
"""

from __future__ import annotations

import re
import sqlite3
from binascii import b2a_base64
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from cockpit.store.db.connection import WritingConnection

OPEN_TABLES: Mapping[str, str] = {
    "journal": "its own chain",
    "journal_head": "compared with the chain",
    "journal_anchor": "its own digest",
    "journal_checkpoints": "hold only while the chain has their row",
    "migrations": "compared with the migrations of this version whenever the store is opened",
    "pruning": "empty between transactions",
    "hook_pending": "events on their way in; hooks write them without the journal",
    "hook_absorber": "a lease",
    "active_task": "which task an agent's session works on now; hooks write it without the journal",
    "task_leases": "leases",
    "remote_rows": "chains of their own, whose ends are in remote.rows.received",
    "session_totals": "sums of the sessions, and compared with them",
}
"""Tables without seals, each with the reason."""

OPEN_COLUMNS: Mapping[str, frozenset[str]] = {
    "events": frozenset(("lease_owner", "lease_token", "lease_expires_at")),
    "sessions": frozenset(("lease_owner", "lease_token", "lease_expires_at")),
    "outbox_actions": frozenset(("lease_owner",)),
    "chain_sessions": frozenset(("beat_at",)),
    "chains": frozenset(("owner", "updated_at")),
}
"""Columns without seals: leases and heartbeats, which change without a step of the work."""

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_WRITTEN = re.compile(
    r"\b(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|REPLACE\s+INTO|UPDATE(?:\s+OR\s+\w+)?|DELETE\s+FROM)\s+\"?(\w+)",
    re.IGNORECASE,
)

Seals = dict[str, dict[str, str | None]]
"""Of each table, the digest of each row that was written, by its key; None for one that was deleted."""


class Shape(Struct, frozen=True):
    """A sealed table: its key and its other columns, in the order in which a digest has them."""

    table: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    """The other columns, by name."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.key, *self.columns)

    def select(self) -> str:
        """Return the query for the rows as :func:`seal_row` takes them: the table, the key, the columns."""
        return f"SELECT '{self.table}', {', '.join(self.names)} FROM {self.table}"  # noqa: S608 - names of the schema

    def key_of(self, row: tuple[Any, ...]) -> str:
        """Return the key of such a row as seals and messages name it."""
        return key_text(row[1 : len(self.key) + 1])


def read_shapes(connection: sqlite3.Connection) -> dict[str, Shape]:
    """Return the sealed tables of the store, by name."""
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        " ORDER BY name"
    ).fetchall()
    return {name: read_shape(connection, name) for (name,) in tables if name not in OPEN_TABLES}


def read_shape(connection: sqlite3.Connection, table: str) -> Shape:
    """Return the shape of a table; one without a key where there is no such table."""
    info = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    keys = sorted((place, name) for _, name, _, _, _, place in info if place)
    key = tuple(name for _, name in keys)
    left_out = OPEN_COLUMNS.get(table, frozenset())
    others = sorted(name for _, name, _, _, _, place in info if not place and name not in left_out)
    return Shape(table, key, tuple(others))


def key_text(key: tuple[Any, ...]) -> str:
    """Return a row's key as seals and messages name it."""
    return str(key[0]) if len(key) == 1 else _encode(key).decode()


def seal_row(row: tuple[Any, ...]) -> str:
    """Return the digest of a row: its table, its key and its other columns."""
    return b2a_base64(sha256(_encode(row)).digest()[:12], newline=False).decode()


class Collector:
    """The rows that were written since the journal's last row was stored.

    A table's triggers are made before the first statement that writes to it: all at once would take longer
    than a short command.
    """

    __slots__ = ("_added", "_connection", "_key_sizes", "_shapes", "_watched", "_written")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._shapes: dict[str, Shape] = {}
        self._watched: set[str] = set()
        self._added: Seals = {}
        self._written: dict[tuple[Any, ...], tuple[Any, ...] | None] = {}
        self._key_sizes: dict[str, int] = {}
        connection.create_function("cockpit_written", -1, self._note_written)
        connection.create_function("cockpit_deleted", -1, self._note_deleted)
        if isinstance(connection, WritingConnection):
            connection.known_statements.clear()
            connection.watch_statement = self._watch_statement
        else:
            self._watch_all()

    def _watch_statement(self, sql: str) -> None:
        """Make the triggers of the tables that a statement writes to."""
        for table in _WRITTEN.findall(sql):
            if table not in self._watched and table not in OPEN_TABLES:
                self._watch(table)

    def has_rows(self) -> bool:
        """Tell whether rows were written that have no seal yet."""
        return bool(self._written)

    def add(self, table: str, key: str, digest: str | None) -> None:
        """Let the journal's next row have this seal, too."""
        self._added.setdefault(table, {})[key] = digest

    def mark(self) -> int:
        """Return how many rows were written, for :meth:`reset`."""
        return len(self._written)

    def roll_back(self, mark: int) -> None:
        """Forget the rows that were written since the mark, and the triggers: they were rolled back.

        A row that was written before as well keeps its place, so all that remain are read again.
        """
        self._watched.clear()
        if isinstance(self._connection, WritingConnection):
            self._connection.known_statements.clear()
        else:
            self._watch_all()
        self._added.clear()
        for key in list(self._written)[mark:]:
            del self._written[key]
        for key in self._written:
            self._written[key] = self._read(key)

    def take(self) -> str:
        """Return the seals of what was written, as JSON, and forget it; empty for nothing."""
        if not self._written and not self._added:
            return ""
        seals, self._added = self._added, {}
        for key, row in self._written.items():
            table = key[0]
            digest = None if row is None else seal_row(row)
            seals.setdefault(table, {})[key_text(key[1:])] = digest
        self._written.clear()
        return _encode_sorted(seals).decode()

    def _watch_all(self) -> None:
        for table in read_shapes(self._connection):
            self._watch(table)

    def _watch(self, table: str) -> None:
        shape = self._shapes.get(table) or read_shape(self._connection, table)
        self._watched.add(table)
        if not shape.key:
            return  # no table, or one that was not made by cockpit
        self._shapes[table] = shape
        self._key_sizes[table] = len(shape.key) + 1
        new = ",".join(f"NEW.{name}" for name in shape.names)
        old_key = ",".join(f"OLD.{name}" for name in shape.key)
        columns = ",".join(shape.names)
        for name, event, call in (
            ("insert", "INSERT", f"cockpit_written('{table}',{new})"),
            ("update", f"UPDATE OF {columns}", f"cockpit_written('{table}',{new})"),
            ("delete", "DELETE", f"cockpit_deleted('{table}',{old_key})"),
        ):
            self._connection.execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS seal_{table}_{name} AFTER {event} ON main.{table}"
                f" BEGIN SELECT {call}; END"
            )

    def _note_written(self, *row: Any) -> None:
        self._written[row[: self._key_sizes[row[0]]]] = row

    def _note_deleted(self, *key: Any) -> None:
        self._written[key] = None

    def _read(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        shape = self._shapes[key[0]]
        terms = " AND ".join(f"{name}=?" for name in shape.key)
        row: tuple[Any, ...] | None = self._connection.execute(
            f"{shape.select()} WHERE {terms}", key[1:]
        ).fetchone()
        return row

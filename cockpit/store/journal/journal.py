"""The journal: one row for every step, chained by digests, written in one transaction with its state.

``docs/reference/journal.md`` specifies the columns, the chain and every event type.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import StoreCorrupt
from cockpit.store.db.connection import WritingConnection
from cockpit.store.journal import seals
from cockpit.store.journal.chain_digest import chain_digest
from cockpit.store.journal.details.detail import D, Detail, decode_detail
from cockpit.store.journal.details.table import detail_type
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.verify_part_program import COLUMNS as COLUMNS


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the journal (``docs/reference/journal.md``)."""

    seq: int
    at: str
    trace_id: str
    session_id: str
    wave_id: str
    packet_id: str
    profile_id: str
    profile_version: int | None
    actor: str
    """Who caused it: ``person``, ``agent``, ``engine``, ``policy:NAME``, ``task_type:NAME``."""
    action: str
    """The event type."""
    result: str
    """``ok``, ``refused`` or ``error``."""
    latency_ms: int | None
    error_code: str
    detail_json: str
    """The detail as it is stored; :attr:`detail` reads it."""
    digest: str
    """The digest of the chain up to this row; empty for a provisional row (``message.delta``)."""
    _detail: Detail | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def detail(self) -> Detail:
        """The detail as the record of the row's event type; never raises, whatever was stored.

        Keys that are missing or of another shape read as empty. An event type that this version of cockpit
        does not know reads as :class:`~cockpit.store.journal.details.table.UnknownDetail`.
        """
        record = self._detail
        if record is None:
            record = decode_detail(detail_type(self.action), self.detail_json)
            object.__setattr__(self, "_detail", record)
        return record

    def read(self, kind: type[D]) -> D:
        """Return the detail as a record of ``kind``, for a reader that has checked the event type."""
        record = self.detail
        return record if isinstance(record, kind) else decode_detail(kind, self.detail_json)

    def raw_detail(self) -> dict[str, Any]:
        """The detail as plain JSON, for export and verification; ``{}`` where it is not an object."""
        try:
            body = json.loads(self.detail_json)
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    def line(self) -> str:
        """Return the row as one line of canonical JSON, as ``stream-json`` and exports print it."""
        return canonical_json(self.body())

    def body(self) -> dict[str, Any]:
        """Return the row as a JSON object: its columns, with the detail as an object."""
        names = COLUMNS[:-2]
        body: dict[str, Any] = {name: getattr(self, name) for name in names}
        return {**body, "detail": self.raw_detail(), "digest": self.digest}


SELECT = f"SELECT {', '.join(COLUMNS)} FROM journal"  # noqa: S608 - fixed column names
TOGETHER = 16
"""Rows that one statement inserts."""
_PLACES = f"({','.join('?' * (len(COLUMNS) + 1))})"
_INSERTS = tuple(
    f"INSERT INTO journal({', '.join(COLUMNS)}, seals) VALUES {','.join([_PLACES] * count)}"  # noqa: S608
    for count in range(TOGETHER + 1)
)
"""The statement for each number of rows."""

READ = 1_000
"""Rows that are read at a time."""

_NO_HEAD = (
    "The journal's recorded end is missing: the file was altered. Restore a copy from the backups next"
    " to it."
)

SELECT_SEALED = f"SELECT {', '.join(COLUMNS)}, seals FROM journal"  # noqa: S608 - fixed column names
"""The columns with a row's seals at the end."""


class Tail:
    """The end of the journal: read before its first row, stored after the last one of a transaction.

    Rows wait, to be inserted together: at the end, and before a statement that could read them. Call
    ``settle`` before the transaction (or savepoint) ends, and ``forget`` after it was rolled back or
    when another connection may have written. ``mark``, before a savepoint, and ``reset`` go back to it.
    """

    __slots__ = (
        *("_collector", "_connection", "_digest", "_has_rows", "_sealed", "_seq", "_together"),
        *("_waiting", "_writer"),
    )

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._collector = seals.Collector(connection)
        self._seq: int | None = None
        self._digest = ""
        self._sealed = 0
        self._has_rows = False
        self._waiting: list[tuple[Any, ...]] = []
        self._writer = connection if isinstance(connection, WritingConnection) else None
        """The connection, where it inserts waiting rows before a statement that could read them."""
        self._together = 1 if self._writer is None else TOGETHER

    def append(self, values: tuple[Any, ...]) -> int:
        """Append a row to the chain and return its seq.

        ``values`` are the columns from ``at`` to ``detail_json``, in order.
        """
        seq = self._next() if self._seq is None else self._seq + 1
        waiting = self._waiting
        waiting.append((seq, *values))
        self._seq = seq
        self._sealed += 1
        self._has_rows = True
        if len(waiting) >= self._together:
            self.insert_waiting()
        elif len(waiting) == 1 and self._writer is not None:
            self._writer.insert_waiting = self.insert_waiting
        return seq

    def append_provisional(self, values: tuple[Any, ...]) -> int:
        """Append a row outside the chain, a fragment of streamed text, and return its seq."""
        seq = self._next() if self._seq is None else self._seq + 1
        self._connection.execute(_INSERTS[1], (seq, *values, None, ""))
        self._seq = seq
        self._has_rows = True
        return seq

    def settle(self) -> None:
        """Store the new end of the journal, once every row that was written has its seal."""
        if self._has_rows:
            self.insert_waiting()
            settled = self._connection.execute(
                "UPDATE journal_head SET seq=?, digest=?, sealed=sealed+?",
                (self._seq, self._digest, self._sealed),
            )
            if settled.rowcount != 1:
                raise StoreCorrupt(_NO_HEAD)
            self._sealed, self._has_rows = 0, False

    def forget(self) -> None:
        """Read the end again before the next row."""
        self._seq, self._digest, self._sealed, self._has_rows = None, "", 0, False

    def roll_back(self) -> None:
        """Forget what the transaction wrote; rows that wait are dropped."""
        self.forget()
        self._waiting.clear()
        self._wait_for_none()
        self._collector.roll_back(0)

    def collect(self, sealed: Iterable[tuple[str, str, str | None]]) -> None:
        """Let the next row have these seals, too: (table, key, digest)."""
        self.insert_waiting()
        for table, key, digest in sealed:
            self._collector.add(table, key, digest)

    def lacks_row_for_seals(self) -> bool:
        """Tell whether rows were written that no waiting row of the journal can seal."""
        return not self._waiting and self._collector.has_rows()

    def mark(self) -> tuple[int | None, str, int, bool, int]:
        """Return where the journal ends now, for :meth:`reset`."""
        self.insert_waiting()
        written = self._collector.mark()
        return self._seq, self._digest, self._sealed, self._has_rows, written

    def reset(self, mark: tuple[int | None, str, int, bool, int]) -> None:
        """Go back to a mark: the rows since were rolled back."""
        self._seq, self._digest, self._sealed, self._has_rows, written = mark
        self._waiting.clear()
        self._wait_for_none()
        self._collector.roll_back(written)

    def insert_waiting(self) -> None:
        """Insert the rows that wait. Where that fails they stay, so that the transaction fails, too."""
        self._wait_for_none()
        while self._waiting:
            rows = self._waiting[:TOGETHER]
            has_more = len(self._waiting) > TOGETHER
            columns: list[Any] = []
            for values in rows:
                sealed = "" if has_more or values is not rows[-1] else self._collector.take()
                self._digest = chain_digest(self._digest, values, sealed, is_plain=True)
                columns += values
                columns += (self._digest, sealed)
            self._connection.execute(_INSERTS[len(rows)], columns)
            del self._waiting[:TOGETHER]

    def _wait_for_none(self) -> None:
        if self._writer is not None:
            self._writer.insert_waiting = None

    def _next(self) -> int:
        """Read the end of the journal; returns the next free seq.

        A row that another program put behind the recorded end does not stop the work; :func:`verify`
        finds it.
        """
        row = self._connection.execute(
            "SELECT max(seq, coalesce((SELECT max(seq) FROM journal), 0)), digest FROM journal_head"
        ).fetchone()
        if row is None:
            raise StoreCorrupt(_NO_HEAD)
        self._digest = row[1]
        return int(row[0]) + 1


def read_row(values: tuple[Any, ...]) -> Row:
    """Return the :class:`Row` of the columns of :data:`SELECT`."""
    columns: tuple[Any, ...] = (*values[:-1], values[-1] or "")
    return Row(*columns)


def rows(
    connection: sqlite3.Connection,
    *,
    after: int = 0,
    session_id: str | None = None,
    action: str | None = None,
    limit: int = 1000,
) -> list[Row]:
    """Return the rows with a seq greater than ``after``, in order, at most ``limit``.

    ``session_id`` and ``action`` leave out rows of other sessions and of other event types.
    """
    terms, values = "", []
    for term, value in (("session_id=?", session_id), ("action=?", action)):
        if value is not None:
            terms += f"{term} AND "
            values.append(value)
    records = connection.execute(
        f"{SELECT} WHERE {terms}seq>? ORDER BY seq LIMIT ?", (*values, after, limit)
    )
    return [read_row(values) for values in records]


def session_rows(
    connection: sqlite3.Connection, session_id: str, *, after: int, until: int, limit: int = READ
) -> list[Row]:
    """Return a session's rows with ``after`` < seq ≤ ``until``, in order, at most ``limit``."""
    records = connection.execute(
        f"{SELECT} WHERE session_id=? AND seq>? AND seq<=? ORDER BY seq LIMIT ?",
        (session_id, after, until, limit),
    )
    return [read_row(values) for values in records]


def newest_rows(connection: sqlite3.Connection, actions: Sequence[Action], limit: int) -> list[Row]:
    """Return the newest ``limit`` rows of each of ``actions``, in order."""
    rows: list[Row] = []
    for action in actions:
        records = connection.execute(
            f"{SELECT} WHERE action=? ORDER BY seq DESC LIMIT ?", (str(action), limit)
        )
        rows += [read_row(values) for values in records]
    return sorted(rows, key=lambda row: row.seq)


def last_seq(connection: sqlite3.Connection) -> int:
    """Return the newest seq; 0 in an empty journal."""
    return int(connection.execute("SELECT seq FROM journal_head").fetchone()[0])

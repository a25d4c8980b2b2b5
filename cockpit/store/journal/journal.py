"""The journal: one row for every step, chained by digests, written in one transaction with its state.

``docs/reference/journal.md`` specifies the columns, the chain and every event type.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import StoreCorrupt
from cockpit.store.journal.chain_digest import chain_digest
from cockpit.store.journal.details.detail import D, Detail, decode_detail
from cockpit.store.journal.details.table import detail_type
from cockpit.store.journal.event_types import Action


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


COLUMNS = (
    "seq",
    "at",
    "trace_id",
    "session_id",
    "wave_id",
    "packet_id",
    "profile_id",
    "profile_version",
    "actor",
    "action",
    "result",
    "latency_ms",
    "error_code",
    "detail_json",
    "digest",
)
"""The columns of the journal, in the order in which a row's digest has them, itself the last."""
SELECT = f"SELECT {', '.join(COLUMNS)} FROM journal"  # noqa: S608 - fixed column names
INSERT = f"INSERT INTO journal({', '.join(COLUMNS)}) VALUES ({','.join('?' * len(COLUMNS))})"  # noqa: S608 - the same

READ = 1_000
"""Rows that are read at a time."""

_NO_HEAD = (
    "The journal's recorded end is missing: the file was altered. Restore a copy from the backups next"
    " to it."
)

End = tuple[int | None, str, int, bool]
"""Where the journal ends: the last seq, its digest, and what is not recorded of it yet."""


class Tail:
    """The end of the journal: read before a transaction's first row, recorded after its last one.

    Call ``settle`` before the transaction (or savepoint) ends, and ``forget`` before one begins and after it
    was rolled back. ``mark``, before a savepoint, and ``reset`` go back to it.
    """

    __slots__ = ("_connection", "_digest", "_has_rows", "_sealed", "_seq")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._seq: int | None = None
        self._digest = ""
        self._sealed = 0
        self._has_rows = False

    def append(self, values: tuple[Any, ...]) -> int:
        """Append a row to the chain and return its seq.

        ``values`` are the columns from ``at`` to ``detail_json``, in order.
        """
        row = (self._next(), *values)
        digest = chain_digest(self._digest, row)
        self._connection.execute(INSERT, (*row, digest))
        self._digest = digest
        self._sealed += 1
        return self._appended(row[0])

    def append_provisional(self, values: tuple[Any, ...]) -> int:
        """Append a row outside the chain, a fragment of streamed text, and return its seq."""
        seq = self._next()
        self._connection.execute(INSERT, (seq, *values, None))
        return self._appended(seq)

    def settle(self) -> None:
        """Record the new end of the journal."""
        if self._has_rows:
            settled = self._connection.execute(
                "UPDATE journal_head SET seq=?, digest=?, sealed=sealed+?",
                (self._seq, self._digest, self._sealed),
            )
            if settled.rowcount != 1:
                raise StoreCorrupt(_NO_HEAD)
            self._sealed, self._has_rows = 0, False

    def forget(self) -> None:
        """Read the end again before the next row."""
        self.reset((None, "", 0, False))

    def mark(self) -> End:
        """Return where the journal ends now, for :meth:`reset`."""
        return self._seq, self._digest, self._sealed, self._has_rows

    def reset(self, mark: End) -> None:
        """Go back to a mark: the rows since were rolled back."""
        self._seq, self._digest, self._sealed, self._has_rows = mark

    def _appended(self, seq: int) -> int:
        self._seq, self._has_rows = seq, True
        return seq

    def _next(self) -> int:
        """Return the next free seq; reads the end of the journal before the first row.

        A row that another program put behind the recorded end does not stop the work; :func:`verify`
        finds it.
        """
        if self._seq is not None:
            return self._seq + 1
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

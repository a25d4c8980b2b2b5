"""The journal: one row for every step, chained by digests, written with the state it reports.

Source: records page of the design; RFC-003 §14.2 (columns), §14.3 (audit actions). The details of
each action are listed in ``docs/journal.md``.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from cockpit.core.canonical_json import canonical_json, text_digest
from cockpit.core.errors import StoreCorrupt
from cockpit.store.journal.details.detail import D, Detail, decode_detail
from cockpit.store.journal.details.table import detail_type
from cockpit.store.journal.event_types import Action


@dataclass(frozen=True, slots=True)
class Row:
    """One row. ``digest`` is empty for a provisional row (``message.delta``)."""

    seq: int
    at: str
    trace_id: str
    session_id: str
    wave_id: str
    packet_id: str
    profile_id: str
    profile_version: int | None
    actor: str
    action: str
    result: str
    latency_ms: int | None
    error_code: str
    detail_json: str
    digest: str
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
        """The row as one line of canonical JSON: what ``stream-json`` and exports print."""
        names = COLUMNS[:-2]
        body: dict[str, Any] = {name: getattr(self, name) for name in names}
        return canonical_json({**body, "detail": self.raw_detail(), "digest": self.digest})


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
SELECT = f"SELECT {', '.join(COLUMNS)} FROM journal"  # noqa: S608 - fixed column names
_INSERT = f"INSERT INTO journal({', '.join(COLUMNS)}) VALUES ({','.join('?' * len(COLUMNS))})"  # noqa: S608


class Tail:
    """The journal's end inside one transaction: read before its first row, written after its last.

    ``settle`` before the transaction (or savepoint) ends, ``forget`` after it was rolled back.
    """

    __slots__ = ("_connection", "_digest", "_sealed", "_seq")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._seq: int | None = None
        self._digest = ""
        self._sealed = 0

    def append(self, values: tuple[Any, ...]) -> int:
        """Append one sealed row; returns its seq.

        ``values`` are the columns from ``at`` to ``detail_json``, in order.
        """
        seq = self._next()
        digest = _chain(self._digest, (seq, *values))
        self._connection.execute(_INSERT, (seq, *values, digest))
        self._seq, self._digest = seq, digest
        self._sealed += 1
        return seq

    def append_provisional(self, values: tuple[Any, ...]) -> int:
        """Append a row outside the chain: a fragment of streamed text, folded away later."""
        seq = self._next()
        self._connection.execute(_INSERT, (seq, *values, None))
        self._seq = seq
        return seq

    def settle(self) -> None:
        """Record the end that the appended rows have made."""
        if self._seq is not None:
            self._connection.execute(
                "UPDATE journal_head SET seq=?, digest=?, sealed=sealed+?",
                (self._seq, self._digest, self._sealed),
            )
            self.forget()

    def forget(self) -> None:
        """Read the end anew before the next row."""
        self._seq, self._digest, self._sealed = None, "", 0

    def _next(self) -> int:
        """The next free seq.

        A row that somebody put behind the recorded end is stepped over, for :func:`verify` to find: it
        must not stop the work.
        """
        if self._seq is not None:
            return self._seq + 1
        row = self._connection.execute(
            "SELECT max(seq, coalesce((SELECT max(seq) FROM journal), 0)), digest FROM journal_head"
        ).fetchone()
        if row is None:
            raise StoreCorrupt(
                "The journal's recorded end is gone: the file was altered. Put back a copy from the "
                "backups beside it."
            )
        self._digest = row[1]
        return int(row[0]) + 1


def fold(connection: sqlite3.Connection, session_id: str, message_id: str) -> None:
    """Remove the provisional rows of one message; its completed row carries the text."""
    connection.execute(
        "DELETE FROM journal WHERE digest IS NULL AND session_id=?"
        " AND json_extract(detail_json, '$.message_id')=?",
        (session_id, message_id),
    )


def fragments(
    connection: sqlite3.Connection, session_id: str, message_id: str, newest: int = -1
) -> list[tuple[int, str]]:
    """(seq, text) of a message's provisional rows, in order; with ``newest``, of the last so many."""
    found = connection.execute(
        "SELECT seq, json_extract(detail_json, '$.text') FROM journal WHERE digest IS NULL"
        " AND session_id=? AND json_extract(detail_json, '$.message_id')=?"
        " ORDER BY seq DESC LIMIT ?",
        (session_id, message_id, newest),
    )
    return [(seq, text or "") for seq, text in found][::-1]


def provisional_text(connection: sqlite3.Connection, session_id: str, message_id: str) -> str:
    """What a message had streamed so far: what a crash left of it."""
    return "".join(text for _, text in fragments(connection, session_id, message_id))


def cut_fragment(connection: sqlite3.Connection, seq: int, text: str) -> None:
    """Put ``text`` in the place of a provisional row's."""
    connection.execute(
        "UPDATE journal SET detail_json=json_set(detail_json, '$.text', ?)"
        " WHERE seq=? AND digest IS NULL",
        (text, seq),
    )


def read_row(values: tuple[Any, ...]) -> Row:
    """A :class:`Row` from the columns of :data:`SELECT`."""
    columns: tuple[Any, ...] = (*values[:-1], values[-1] or "")
    return Row(*columns)


def rows(
    connection: sqlite3.Connection,
    *,
    after: int = 0,
    session_id: str | None = None,
    limit: int = 1000,
) -> list[Row]:
    """Rows with seq greater than ``after``, in order, at most ``limit``."""
    if session_id is None:
        found = connection.execute(f"{SELECT} WHERE seq>? ORDER BY seq LIMIT ?", (after, limit))
    else:
        found = connection.execute(
            f"{SELECT} WHERE session_id=? AND seq>? ORDER BY seq LIMIT ?",
            (session_id, after, limit),
        )
    return [read_row(values) for values in found]


def last_seq(connection: sqlite3.Connection) -> int:
    """The newest seq ever given; 0 in an empty journal."""
    return int(connection.execute("SELECT seq FROM journal_head").fetchone()[0])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verification found: ``broken`` names the first seq at fault and why, or is None."""

    rows: int
    broken: tuple[int, str] | None

    @property
    def ok(self) -> bool:
        return self.broken is None


def verify(connection: sqlite3.Connection) -> Verdict:
    """Walk the whole chain and compare it with the head.

    Finds any sealed row changed, removed or inserted, the last one included, and a head that was
    altered. Provisional rows are only allowed for messages that are still streaming.
    """
    head = connection.execute("SELECT seq, digest, sealed FROM journal_head").fetchall()
    if len(head) != 1:
        return Verdict(0, (0, "the journal's recorded end is gone or there twice"))
    walk = _Walk(*head[0])
    try:
        for values in connection.execute(f"{SELECT} ORDER BY seq"):
            fault = walk.fault(values)
            if fault is not None:
                return Verdict(walk.counted, fault)
    except sqlite3.OperationalError as error:
        if hasattr(error, "sqlite_errorcode"):
            raise
        # Python's own: text that is no UTF-8, which no row of ours holds.
        return Verdict(walk.counted, (walk.last, f"the row after {walk.last} is not readable"))
    return Verdict(walk.counted, walk.end())


class _Walk:
    """The state of one verification: the chain, and which messages are streaming."""

    def __init__(self, head_seq: int, head_digest: str, sealed: int) -> None:
        self.counted = 0
        self.last = 0
        self._head = (head_digest, sealed, head_seq)
        self._previous = ""
        self._streaming: dict[tuple[str, str], int] = {}

    def fault(self, values: tuple[Any, ...]) -> tuple[int, str] | None:
        """Take the next row in; its seq and what is wrong, or None."""
        seq, action, digest = values[0], values[9], values[-1]
        self.last = seq
        if seq > self._head[2]:
            return seq, f"row {seq} stands after the recorded end {self._head[2]}"
        if digest is None:
            return self._fragment(seq, values)
        self.counted += 1
        if not _follows(self._previous, values):
            return (
                seq,
                f"row {seq} does not follow from the row before it: changed, removed or inserted",
            )
        self._previous = digest
        if action == Action.MESSAGE_STARTED:
            self._streaming[_message(values)] = 0
        elif action == Action.MESSAGE_COMPLETED and (
            left := self._streaming.pop(_message(values), 0)
        ):
            return left, f"row {left} is a fragment of a finished message"
        return None

    def end(self) -> tuple[int, str] | None:
        """After the last row: whether it is the one that the head records."""
        if (self._previous, self.counted, self.last) == self._head:
            return None
        _, sealed, seq = self._head
        return (
            seq,
            f"the journal ends at {self.last} and not at {seq}: {sealed} rows were written,"
            f" {self.counted} are there",
        )

    def _fragment(self, seq: int, values: tuple[Any, ...]) -> tuple[int, str] | None:
        if values[9] != Action.MESSAGE_DELTA:
            return seq, f"row {seq} ({values[9]}) has no digest"
        try:
            message = _message(values)
        except (ValueError, TypeError, AttributeError):
            message = ("", "")
        if message not in self._streaming:
            return seq, f"row {seq} belongs to no message that is streaming"
        self._streaming[message] = seq
        return None


def _message(values: tuple[Any, ...]) -> tuple[str, str]:
    return values[3], json.loads(values[-2]).get("message_id", "")


def _follows(previous: str, values: tuple[Any, ...]) -> bool:
    try:
        return bool(_chain(previous, values[:-1]) == values[-1])
    except TypeError:
        return False  # a column holds bytes, which no row of ours does


def _chain(previous: str, values: tuple[Any, ...]) -> str:
    return text_digest(previous + "\n" + canonical_json(list(values)))

"""The journal: one row for every step, chained by digests, written in one transaction with its state.

``docs/reference/journal.md`` specifies the columns, the chain and every event type.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from heapq import merge
from itertools import chain
from typing import Any

import msgspec

from cockpit.core.canonical_json import canonical_json, text_digest
from cockpit.core.errors import StoreCorrupt
from cockpit.store.db.connection import WritingConnection
from cockpit.store.journal import anchor, seals
from cockpit.store.journal.check_part import COLUMNS as COLUMNS
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


SELECT = f"SELECT {', '.join(COLUMNS)} FROM journal"  # noqa: S608 - fixed column names
TOGETHER = 16
"""Rows that one statement inserts."""
_PLACES = f"({','.join('?' * (len(COLUMNS) + 1))})"
_INSERTS = tuple(
    f"INSERT INTO journal({', '.join(COLUMNS)}, seals) VALUES {','.join([_PLACES] * count)}"  # noqa: S608
    for count in range(TOGETHER + 1)
)
"""The statement for each number of rows."""

_NO_HEAD = (
    "The journal's recorded end is missing: the file was altered. Restore a copy from the backups next"
    " to it."
)


# SQLite writes a row's canonical JSON, nearly always byte for byte: a digest that matches proves it. Any
# other row is read as a whole and checked on its own.
_FIRST = -(2**63)
_CHAINED = ", ".join(COLUMNS[:-1])
_VERIFY = (
    f"SELECT seq, CASE seals WHEN '' THEN json_array({_CHAINED})"  # noqa: S608 - fixed column names
    f" ELSE json_array({_CHAINED}, seals) END, digest FROM journal WHERE seq>=? ORDER BY seq"
)
_Body = tuple[int, str, str]
"""A row of it: seq, canonical JSON, digest."""
_MARKS = "SELECT seq, ? FROM journal WHERE action=? AND seq>=? ORDER BY seq"
_NO_MARK = (2**63, 0)
_AT_ONCE = 128
"""Rows that are checked at once: few enough for the processor's cache."""
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
        "_waiting",
    )

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._collector = seals.Collector(connection)
        self._seq: int | None = None
        self._digest = ""
        self._sealed = 0
        self._has_rows = False
        self._waiting: list[tuple[Any, ...]] = []
        self._together = TOGETHER if isinstance(connection, WritingConnection) else 1

    def append(self, values: tuple[Any, ...]) -> int:
        """Append a row to the chain and return its seq.

        ``values`` are the columns from ``at`` to ``detail_json``, in order.
        """
        seq = self._next()
        self._waiting.append((seq, *values))
        self._seq = seq
        self._sealed += 1
        self._has_rows = True
        if len(self._waiting) >= self._together:
            self.insert_waiting()
        elif len(self._waiting) == 1 and isinstance(self._connection, WritingConnection):
            self._connection.insert_waiting = self.insert_waiting
        return seq

    def append_provisional(self, values: tuple[Any, ...]) -> int:
        """Append a row outside the chain, a fragment of streamed text, and return its seq."""
        seq = self._next()
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
            rows: list[tuple[Any, ...]] = []
            for values in self._waiting[:TOGETHER]:
                is_last = len(rows) == len(self._waiting) - 1
                sealed = self._collector.take() if is_last else ""
                self._digest = chain_digest(self._digest, values, sealed, is_plain=True)
                rows.append((*values, self._digest, sealed))
            self._connection.execute(_INSERTS[len(rows)], tuple(chain.from_iterable(rows)))
            del self._waiting[:TOGETHER]

    def _wait_for_none(self) -> None:
        if isinstance(self._connection, WritingConnection):
            self._connection.insert_waiting = None

    def _next(self) -> int:
        """Return the next free seq.

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


def last_seq(connection: sqlite3.Connection) -> int:
    """Return the newest seq; 0 in an empty journal."""
    return int(connection.execute("SELECT seq FROM journal_head").fetchone()[0])


class Verified(msgspec.Struct, frozen=True):
    """How far the journal was verified."""

    seq: int
    digest: str
    sealed: int
    """Rows of the chain up to ``seq``."""
    streaming: tuple[tuple[str, str], ...]
    """Session and id of the messages that were streaming there."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a verification."""

    rows: int
    """How many sound rows of the chain were read."""
    broken: tuple[int, str] | None
    """The first row that is wrong, and why; None for a sound journal."""
    pruned: int = 0
    """The last row that was pruned; 0 for a journal that begins at its first row."""
    since: int = 0
    """The row that it went on from; 0 for a verification of the whole journal."""
    checkpoint: Verified | None = field(default=None, compare=False)
    """Where a later verification can go on; None for a broken journal and an empty one."""

    @property
    def ok(self) -> bool:
        return self.broken is None


def verify(connection: sqlite3.Connection, since: Verified | None = None) -> Verdict:
    """Check the whole chain against the recorded end, from the anchor on where the journal was pruned.

    This finds any row of the chain that was changed, removed or inserted, and an altered end. Provisional
    rows are allowed only for messages that are still streaming. With ``since`` only the rows after it are
    read.
    """
    head = connection.execute("SELECT seq, digest, sealed FROM journal_head").fetchall()
    if len(head) != 1:
        return Verdict(0, (0, "the journal's recorded end is missing or stored twice"))
    start = anchor.find(connection) or anchor.START
    if start is not anchor.START and not anchor.is_sound(connection, start):
        return Verdict(0, (start.seq, "the anchor of the pruned journal was changed"), start.seq)
    pruned, first = start.seq, _FIRST
    if since is not None:
        start = anchor.Anchor(since.seq, since.digest, since.sealed, "{}", "", "")
        first = since.seq + 1
    seq, digest, sealed = head[0]
    walk = _Walk(seq, digest, sealed, start, since.streaming if since else ())
    try:
        fault = _walk_bodies(connection, walk, first)
        if fault is not None:
            return Verdict(walk.counted, fault, pruned)
    except sqlite3.OperationalError as error:
        if hasattr(error, "sqlite_errorcode"):
            raise
        # Raised by Python for text that is not UTF-8; cockpit writes no such row.
        why = f"the row after {walk.last} is not readable"
        return Verdict(walk.counted, (walk.last, why), pruned)
    fault = walk.end()
    checkpoint = walk.checkpoint() if fault is None else None
    return Verdict(walk.counted, fault, pruned, since.seq if since else 0, checkpoint)


def _walk_bodies(connection: sqlite3.Connection, walk: _Walk, first: int) -> tuple[int, str] | None:
    """Check all rows by their canonical JSON; what does not match is checked column by column."""
    try:
        ends = (str(Action.MESSAGE_STARTED), str(Action.MESSAGE_COMPLETED))
        # Read from an index: to look at the action of every row takes longer.
        walk.mark_messages(
            merge(*(connection.execute(_MARKS, (n, name, first)) for n, name in enumerate(ends)))
        )
        rows = connection.execute(_VERIFY, (first,))
        while (stop := walk.follow(rows)) is not None:
            seq, fault = stop
            if fault is None:
                values = connection.execute(f"{SELECT_SEALED} WHERE seq=?", (seq,)).fetchone()
                fault = walk.fault(values[:-1], values[-1])
            if fault is not None:
                return fault
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) != sqlite3.SQLITE_ERROR:
            raise
        # Bytes that are no text: which row, and whether it is read at all, the columns show.
        following = walk.last + 1 if walk.counted else first
        for values in connection.execute(
            f"{SELECT_SEALED} WHERE seq>=? ORDER BY seq", (following,)
        ):
            fault = walk.fault(values[:-1], values[-1])
            if fault is not None:
                return fault
    return None


class _Walk:
    """The state of one verification: the chain, and which messages are streaming."""

    def __init__(
        self,
        head_seq: int,
        head_digest: str,
        sealed: int,
        start: anchor.Anchor,
        streaming: Iterable[tuple[str, str]],
    ) -> None:
        self.counted = 0
        """How many sound rows of the chain were read, rows before the anchor included."""
        self.last = start.seq
        self._start = start
        self._kept_rows = 0
        self._kept_sum = ""
        self._head = (head_digest, sealed, head_seq)
        self._previous = start.digest
        self._streaming: dict[tuple[str, str], int] = dict.fromkeys(streaming, 0)
        self._sealed_at = start.seq
        self._ahead: Sequence[_Body] = ()
        """Rows that were read and not checked yet."""
        self._marks: Iterator[tuple[int, int]] = iter(())
        self._mark = _NO_MARK

    def checkpoint(self) -> Verified | None:
        """Return where a later verification can go on, after a sound one."""
        digest, sealed, _ = self._head
        if not self._sealed_at:
            return None
        return Verified(self._sealed_at, digest, sealed, tuple(self._streaming))

    def mark_messages(self, marks: Iterator[tuple[int, int]]) -> None:
        """Check the rows that begin a message (seq, 0) and those that end one (seq, 1), in order."""
        self._marks = marks
        self._mark = next(marks, _NO_MARK)

    def follow(self, rows: sqlite3.Cursor) -> tuple[int, tuple[int, str] | None] | None:
        """Count rows by their canonical JSON until one does not follow; return its seq, None at the end.

        Such a row says nothing yet: :meth:`fault` checks it column by column. Where its message is at
        fault, that is returned with it. Call it again for the rows after it.
        """
        while part := self._ahead or rows.fetchmany(_AT_ONCE):
            count = self._count_following(part)
            self._ahead = part[count + 1 :]
            stop = self._pass(part[:count])
            if stop is not None:
                return stop
            if count < len(part):
                return part[count][0], None
        return None

    def _count_following(self, part: Sequence[_Body]) -> int:
        """Count the first rows of ``part`` that follow from each other."""
        first, most = self._start.seq, self._head[2]
        seqs, bodies, stored = zip(*part, strict=True)
        before = (self._previous, *stored)
        if first < seqs[0] and seqs[-1] <= most and None not in stored:
            # Each row against what is stored of the row before: that one is compared, too.
            digests = [
                sha256(f"{start}\n{body}".encode()).hexdigest()
                for start, body in zip(before, bodies, strict=False)
            ]
            if digests == list(stored):
                return len(part)
        for at, (seq, body, digest) in enumerate(part):
            own = sha256(f"{before[at]}\n{body}".encode()).hexdigest()
            if not first < seq <= most or own != digest:
                return at
        return len(part)

    def _pass(self, part: Sequence[_Body]) -> tuple[int, tuple[int, str]] | None:
        """Count sound rows; return the first whose message is at fault, with what is wrong."""
        while part and self._mark[0] <= part[-1][0]:
            marked, is_end = self._mark
            self._mark = next(self._marks, _NO_MARK)
            at = bisect_left(part, (marked,))
            # A row that did not follow was checked as a whole. An end without a beginning is no fault.
            if part[at][0] != marked or (is_end and not self._streaming):
                continue
            seq, body, stored = part[at]
            fault = self.message_fault((*_decode_row(body)[: len(COLUMNS) - 1], stored))
            if fault is not None:
                self._count(part[: at + 1])
                return seq, fault
        self._count(part)
        return None

    def _count(self, part: Sequence[_Body]) -> None:
        if part:
            self.counted += len(part)
            self.last = self._sealed_at = part[-1][0]
            self._previous = part[-1][2]

    def fault(self, values: tuple[Any, ...], sealed: str) -> tuple[int, str] | None:
        """Check the next row; return its seq and what is wrong, or None."""
        seq, digest = values[0], values[-1]
        if seq <= self._start.seq:
            return self._kept_fault(values)
        self.last = seq
        if seq > self._head[2]:
            return seq, f"row {seq} is behind the recorded end {self._head[2]}"
        if digest is None:
            return self._fragment(seq, values)
        self.counted += 1
        if not follows(self._previous, values, sealed):
            return (
                seq,
                f"row {seq} does not follow from the row before it: changed, removed or inserted",
            )
        self._previous, self._sealed_at = digest, seq
        return self.message_fault(values)

    def message_fault(self, values: tuple[Any, ...]) -> tuple[int, str] | None:
        """Keep in mind which messages stream; return what is wrong with a finished one, or None."""
        action = values[9]
        if action == Action.MESSAGE_STARTED:
            self._streaming[_message(values)] = 0
        elif action == Action.MESSAGE_COMPLETED and (
            left := self._streaming.pop(_message(values), 0)
        ):
            return left, f"row {left} is a fragment of a finished message"
        return None

    def end(self) -> tuple[int, str] | None:
        """Check that the last row is the recorded end; return what is wrong, or None."""
        start = self._start
        if (self._kept_rows, self._kept_sum) != (start.kept, start.kept_sum):
            return (
                start.seq,
                f"of the rows up to {start.seq} that pruning left, one was changed, removed or inserted:"
                f" {start.kept} were left, {self._kept_rows} are there",
            )
        counted = start.sealed + self.counted - self._kept_rows
        if (self._previous, counted, self.last) == self._head:
            return None
        _, sealed, seq = self._head
        return (
            seq,
            f"the journal ends at {self.last} and not at {seq}: {sealed} rows were written,"
            f" {counted} are there",
        )

    def _kept_fault(self, values: tuple[Any, ...]) -> tuple[int, str] | None:
        """Check a row that pruning left before the anchor."""
        seq = values[0]
        if values[-1] is None:
            return self._fragment(seq, values)
        self.counted += 1
        self._kept_rows += 1
        try:
            self._kept_sum = anchor.add_digests(self._kept_sum, [values])
            return self.message_fault(values)
        except (TypeError, ValueError, AttributeError):
            return seq, f"row {seq}, which pruning left, was changed"

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


class _OfMessage(msgspec.Struct):
    message_id: str = ""


_decode_row = msgspec.json.Decoder(list[Any]).decode
_decode_message = msgspec.json.Decoder(_OfMessage).decode


def _message(values: tuple[Any, ...]) -> tuple[str, str]:
    try:
        return values[3], _decode_message(values[-2]).message_id
    except (msgspec.DecodeError, UnicodeError, TypeError):
        return values[3], json.loads(values[-2]).get("message_id", "")


def follows(previous: str, values: tuple[Any, ...], sealed: str) -> bool:
    """Tell whether a row, with its digest at the end, follows from the digest ``previous``."""
    try:
        return bool(chain_digest(previous, values[:-1], sealed) == values[-1])
    except TypeError:
        return False  # A column contains bytes; cockpit writes no such row.


def chain_digest(
    previous: str, values: tuple[Any, ...], sealed: str = "", *, is_plain: bool = False
) -> str:
    """Return the digest of a row that follows ``previous``; ``is_plain``: it is a row of ours."""
    columns = (*values, sealed) if sealed else values
    if is_plain:
        try:
            # The bytes of canonical JSON, as canonical_json itself would get them.
            return sha256(b"%b\n%b" % (previous.encode(), _encode_plain(columns))).hexdigest()
        except (TypeError, ValueError):
            pass  # a lone surrogate
    return text_digest(f"{previous}\n{canonical_json(columns, is_plain=is_plain)}")


_encode_plain = msgspec.json.Encoder(order="sorted").encode

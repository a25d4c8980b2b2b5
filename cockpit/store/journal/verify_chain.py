"""Verify the journal's chain: every row follows from the row before it, up to the recorded end.

Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from heapq import merge
from typing import Any

import msgspec

from cockpit.store.journal import prune_anchor
from cockpit.store.journal.chain_digest import follows
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import COLUMNS, SELECT_SEALED

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
    start = prune_anchor.find(connection) or prune_anchor.START
    if start is not prune_anchor.START and not prune_anchor.is_sound(connection, start):
        return Verdict(0, (start.seq, "the anchor of the pruned journal was changed"), start.seq)
    pruned, first = start.seq, _FIRST
    if since is not None:
        start = prune_anchor.Anchor(since.seq, since.digest, since.sealed, "{}", "", "")
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
        # Bytes that are not text: which row, and whether it is read at all, the columns show.
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
        start: prune_anchor.Anchor,
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
            # A row that did not follow was checked as a whole. An end without a beginning is not a fault.
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
            self._kept_sum = prune_anchor.add_digests(self._kept_sum, [values])
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


def is_linked(connection: sqlite3.Connection, seq: int) -> bool:
    """Tell whether a row follows from the row of the chain before it, and the next one from it.

    Rows that pruning left have no neighbours; a verification of the journal checks them by their sum.
    """
    start = prune_anchor.find(connection) or prune_anchor.START
    if seq <= start.seq:
        return True
    before = connection.execute(
        "SELECT digest FROM journal WHERE seq<? AND seq>? AND digest IS NOT NULL"
        " ORDER BY seq DESC LIMIT 1",
        (seq, start.seq),
    ).fetchone()
    following = connection.execute(
        f"{SELECT_SEALED} WHERE seq>=? AND digest IS NOT NULL ORDER BY seq LIMIT 2", (seq,)
    ).fetchall()
    previous = start.digest if before is None else before[0]
    for *columns, sealed in following:
        values = tuple(columns)
        if not follows(previous, values, sealed):
            return False
        previous = values[-1]
    if len(following) == 1:  # the last row
        (end,) = connection.execute("SELECT digest FROM journal_head").fetchone()
        return bool(end == previous)
    return bool(following) and following[0][0] == seq

"""Verify the journal's chain: every row follows from the row before it, up to the recorded end.

Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from msgspec import Struct

from cockpit.store.journal import prune_anchor
from cockpit.store.journal.chain_digest import follows
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import SELECT


class Verdict(Struct, frozen=True):
    """The result of a verification."""

    rows: int
    """How many sound rows of the chain were read."""
    broken: tuple[int, str] | None
    """The first row that is wrong, and why; None for a sound journal."""
    pruned: int = 0
    """The last row that was pruned; 0 for a journal that begins at its first row."""

    @property
    def ok(self) -> bool:
        return self.broken is None


def verify(connection: sqlite3.Connection) -> Verdict:
    """Check the whole chain against the recorded end, from the anchor on where the journal was pruned.

    This finds any row of the chain that was changed, removed or inserted, and an altered end. Provisional
    rows are allowed only for messages that are still streaming.
    """
    head = connection.execute("SELECT seq, digest, sealed FROM journal_head").fetchall()
    if len(head) != 1:
        return Verdict(0, (0, "the journal's recorded end is missing or stored twice"))
    start = prune_anchor.find(connection) or prune_anchor.START
    if start is not prune_anchor.START and not prune_anchor.is_sound(connection, start):
        return Verdict(0, (start.seq, "the anchor of the pruned journal was changed"), start.seq)
    seq, digest, sealed = head[0]
    walk = _Walk((digest, sealed, seq), start)
    try:
        for values in connection.execute(f"{SELECT} ORDER BY seq"):
            fault = walk.fault(values)
            if fault is not None:
                return Verdict(walk.counted, fault, start.seq)
    except sqlite3.OperationalError as error:
        if hasattr(error, "sqlite_errorcode"):
            raise
        # Raised by Python for text that is not UTF-8; cockpit writes no such row.
        why = f"the row after {walk.last} is not readable"
        return Verdict(walk.counted, (walk.last, why), start.seq)
    return Verdict(walk.counted, walk.end(), start.seq)


class _Walk:
    """The state of one verification: the chain, and which messages are streaming."""

    def __init__(self, head: tuple[str, int, int], start: prune_anchor.Anchor) -> None:
        self.counted = 0
        """How many sound rows of the chain were read, rows before the anchor included."""
        self.last = start.seq
        self._start = start
        self._kept_rows = 0
        self._kept_sum = ""
        self._head = head
        self._previous = start.digest
        self._streaming: dict[tuple[str, str], int] = {}

    def fault(self, values: tuple[Any, ...]) -> tuple[int, str] | None:
        """Check the next row; return its seq and what is wrong, or None."""
        seq, digest = values[0], values[-1]
        if seq <= self._start.seq:
            return self._kept_fault(values)
        self.last = seq
        if seq > self._head[2]:
            return seq, f"row {seq} is behind the recorded end {self._head[2]}"
        if digest is None:
            return self._fragment(seq, values)
        if not follows(self._previous, values):
            return (
                seq,
                f"row {seq} does not follow from the row before it: changed, removed or inserted",
            )
        self.counted += 1
        self._previous = digest
        return self._message_fault(values)

    def _message_fault(self, values: tuple[Any, ...]) -> tuple[int, str] | None:
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
            return self._message_fault(values)
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


def _message(values: tuple[Any, ...]) -> tuple[str, str]:
    return values[3], json.loads(values[-2]).get("message_id", "")

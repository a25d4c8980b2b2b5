"""Verifying a long journal in parts, each in a process of its own.

A row is checked against the stored digest of the row before it, so parts need nothing of each other. A part
only says that it is sound: where it is not, :func:`cockpit.store.journal.journal.verify` reads the journal
in one and finds the row. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from heapq import merge
from itertools import pairwise
from pathlib import Path

import msgspec

from cockpit.store.db.connection import connect
from cockpit.store.journal import anchor
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import COLUMNS, Verdict, Verified

LEAST = 100_000
"""Rows of a part: fewer are read sooner than a process starts."""
MOST_PARTS = 8
_AT_ONCE = 128
_CHAINED = ", ".join(COLUMNS[:-1])
_BODIES = (
    f"SELECT CASE seals WHEN '' THEN json_array({_CHAINED})"  # noqa: S608 - fixed column names
    f" ELSE json_array({_CHAINED}, seals) END, digest, seq FROM journal"
    " WHERE seq>? AND seq<=? ORDER BY seq"
)
_MARKS = (
    "SELECT seq, ?, session_id, detail_json FROM journal"
    " WHERE action=? AND seq>? AND seq<=? ORDER BY seq"
)


class Part(msgspec.Struct, frozen=True):
    """A part of the chain in which every row follows from the one before it."""

    rows: int
    start: str
    """The digest of the row before it."""
    digest: str
    """The digest of the last row."""
    begun: tuple[tuple[str, str], ...]
    """Session and id of the messages that began here and were not completed here."""
    ended: tuple[tuple[str, str], ...]
    """Those that were completed here and began earlier."""


class _OfMessage(msgspec.Struct):
    message_id: str = ""


_decode_message = msgspec.json.Decoder(_OfMessage).decode
_Answer = msgspec.json.Decoder(Part | None)


class Check:
    """The processes that check the parts of a journal."""

    def __init__(
        self, head: tuple[int, str, int], parts: Sequence[subprocess.Popen[bytes]]
    ) -> None:
        self._head = head
        self._parts = parts

    def read_verdict(self) -> Verdict | None:
        """Wait for the parts; return the verdict on a sound journal, None where a part is not sound."""
        answers = [part.communicate()[0] for part in self._parts]
        if any(part.returncode != 0 for part in self._parts):
            return None
        seq, digest, sealed = self._head
        streaming: dict[tuple[str, str], None] = {}
        rows, last = 0, anchor.START.digest
        try:
            for answer in answers:
                part = _Answer.decode(answer)
                if part is None or part.start != last:
                    return None
                for ended in part.ended:
                    streaming.pop(ended, None)
                streaming |= dict.fromkeys(part.begun)
                rows, last = rows + part.rows, part.digest
        except msgspec.DecodeError:
            return None
        if (last, rows) != (digest, sealed):
            return None
        return Verdict(rows, None, checkpoint=Verified(seq, digest, sealed, tuple(streaming)))


def start_check(path: Path, connection: sqlite3.Connection) -> Check | None:
    """Start to check a journal; None for one that is read sooner, or only, in one.

    That is a short one, one that was pruned, and one with rows that are not in the chain.
    """
    head = connection.execute("SELECT seq, digest, sealed FROM journal_head").fetchall()
    if len(head) != 1:
        return None
    try:
        count = min(len(os.sched_getaffinity(0)), MOST_PARTS, head[0][0] // LEAST)
    except (AttributeError, TypeError):
        return None  # another system, or an altered end
    outside = "SELECT 1 FROM journal WHERE seq<=0 OR seq>? LIMIT 1"
    if (
        count < 2
        or anchor.find(connection) is not None
        or connection.execute(outside, (head[0][0],)).fetchone() is not None
    ):
        return None
    ends = [_row_at(connection, head[0][0] * place // count) for place in range(count + 1)]
    if ends[0] != 0 or ends[-1] != head[0][0]:
        return None
    processes: list[subprocess.Popen[bytes]] = []
    for after, until in pairwise(ends):
        # -P: the folder of a project must never be where modules come from.
        words = ("-P", "-m", "cockpit.store.journal.verify_parts", path, str(after), str(until))
        try:
            processes.append(
                subprocess.Popen(
                    [sys.executable, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            )
        except OSError:  # no process is left
            for process in processes:
                process.kill()
                process.communicate()
            return None
    return Check(head[0], processes)


def check_part(connection: sqlite3.Connection, after: int, until: int) -> Part | None:
    """Check the rows after < seq ≤ until; None where one of them needs a closer look."""
    start = anchor.START.digest
    if after:
        row = connection.execute("SELECT digest FROM journal WHERE seq=?", (after,)).fetchone()
        if row is None or row[0] is None:
            return None
        start = row[0]
    counted, last, previous = 0, after, start
    rows = connection.execute(_BODIES, (after, until))
    while part := rows.fetchmany(_AT_ONCE):
        bodies, stored, seqs = zip(*part, strict=True)
        # Each row against what is stored of the row before: that one is compared, too.
        before = (previous, *stored)
        digests = [
            sha256(f"{digest}\n{body}".encode()).hexdigest()
            for digest, body in zip(before, bodies, strict=False)
        ]
        if digests != list(stored):
            return None
        counted, last, previous = counted + len(part), seqs[-1], stored[-1]
    if last != until:
        return None
    begun: dict[tuple[str, str], None] = {}
    ended: list[tuple[str, str]] = []
    actions = (str(Action.MESSAGE_STARTED), str(Action.MESSAGE_COMPLETED))
    marks = merge(
        *(connection.execute(_MARKS, (n, name, after, until)) for n, name in enumerate(actions))
    )
    for _, is_end, session_id, detail in marks:
        message = (session_id, _decode_message(detail).message_id)
        if not is_end:
            begun[message] = None
        elif message in begun:
            del begun[message]
        else:
            ended.append(message)
    return Part(counted, start, previous, tuple(begun), tuple(ended))


def _row_at(connection: sqlite3.Connection, seq: int) -> int:
    """Return the last row up to ``seq``; 0 without one."""
    row = connection.execute("SELECT max(seq) FROM journal WHERE seq<=?", (seq,)).fetchone()
    return int(row[0] or 0)


def main(path: str, after: str, until: str) -> int:
    """Check one part and print the answer as JSON; returns the exit code."""
    connection = connect(Path(path), read_only=True)
    try:
        part = check_part(connection, int(after), int(until))
    except (sqlite3.Error, msgspec.DecodeError, UnicodeError, TypeError):
        part = None  # a row that is read one by one says what is wrong with it
    sys.stdout.buffer.write(msgspec.json.encode(part))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

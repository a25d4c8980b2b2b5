"""Verifying a long journal in parts, each in a process of its own.

A row is checked against the stored digest of the row before it, so parts need nothing of each other. A part
only says that it is sound. Where it is not, :func:`cockpit.store.journal.verify_chain.verify` reads the
whole journal and finds the row. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from cockpit.store.journal import prune_anchor
from cockpit.store.journal.seals import Seals
from cockpit.store.journal.verify_chain import Verdict, Verified
from cockpit.store.journal.verify_part_program import Part

LEAST = 100_000
"""Rows of a part: fewer are read sooner than a process starts."""
MOST_PARTS = 8
_Answer = msgspec.json.Decoder(Part | None)


class CheckedChain(NamedTuple):
    """What a sound journal says."""

    verdict: Verdict
    seals: Seals
    """The last seal of each row of a table."""


class Check:
    """The processes that check the parts of a journal."""

    def __init__(
        self, head: tuple[int, str, int], parts: Sequence[subprocess.Popen[bytes]]
    ) -> None:
        self._head = head
        self._parts = parts

    def read_verdict(self) -> CheckedChain | None:
        """Wait for the parts; return what a sound journal says, None where a part is not sound."""
        answers = [part.communicate()[0] for part in self._parts]
        if any(part.returncode != 0 for part in self._parts):
            return None
        seq, digest, sealed = self._head
        streaming: dict[tuple[str, str], None] = {}
        rows, last = 0, prune_anchor.START.digest
        seals: Seals = {}
        try:
            for answer in answers:
                part = _Answer.decode(answer)
                if part is None or part.start != last:
                    return None
                for ended in part.ended:
                    streaming.pop(ended, None)
                streaming |= dict.fromkeys(part.begun)
                rows, last = rows + part.rows, part.digest
                for table, keys in part.seals.items():
                    seals.setdefault(table, {}).update(keys)
        except msgspec.DecodeError:
            return None
        if (last, rows) != (digest, sealed):
            return None
        checkpoint = Verified(seq, digest, sealed, tuple(streaming))
        return CheckedChain(Verdict(rows, None, checkpoint=checkpoint), seals)


def start_check(
    path: Path,
    connection: sqlite3.Connection,
    *,
    least: int = LEAST,
    processors: int | None = None,
) -> Check | None:
    """Start to check a journal; None for one that is read sooner, or only, in one.

    That is a short one, one that was pruned, and one with rows that are not in the chain. Each part has at
    least ``least`` rows; there is one for each of ``processors`` (None: those that this process may use).
    """
    head = connection.execute("SELECT seq, digest, sealed FROM journal_head").fetchall()
    if len(head) != 1:
        return None
    try:
        usable = processors or len(os.sched_getaffinity(0))
        count = min(usable, MOST_PARTS, head[0][0] // least)
    except (AttributeError, TypeError):
        return None  # another system, or an altered end
    outside = "SELECT 1 FROM journal WHERE seq<=0 OR seq>? LIMIT 1"
    if (
        count < 2
        or prune_anchor.find(connection) is not None
        or connection.execute(outside, (head[0][0],)).fetchone() is not None
    ):
        return None
    ends = [_row_at(connection, head[0][0] * place // count) for place in range(count + 1)]
    if ends[0] != 0 or ends[-1] != head[0][0]:
        return None
    processes: list[subprocess.Popen[bytes]] = []
    for after, until in pairwise(ends):
        # -P: the folder of a project must never be where modules come from.
        place = f"{path.as_uri()}?mode=ro"
        words = (
            "-P",
            "-m",
            "cockpit.store.journal.verify_part_program",
            place,
            str(after),
            str(until),
        )
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


def _row_at(connection: sqlite3.Connection, seq: int) -> int:
    """Return the last row up to ``seq``; 0 without one."""
    row = connection.execute("SELECT max(seq) FROM journal WHERE seq<=?", (seq,)).fetchone()
    return int(row[0] or 0)

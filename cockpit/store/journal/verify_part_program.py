"""Checking one part of a long journal: a program that imports little, because each part starts one.

It folds the seals of its rows on the way, so that no other process reads them again. Specified in
``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3
import sys
from hashlib import sha256
from heapq import merge

import msgspec

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

_AT_ONCE = 128
"""Rows that are checked at once: few enough for the processor's cache."""
_CHAINED = ", ".join(COLUMNS[:-1])
_BODIES = (
    f"SELECT CASE seals WHEN '' THEN json_array({_CHAINED})"  # noqa: S608 - fixed column names
    f" ELSE json_array({_CHAINED}, seals) END, digest, seq, seals FROM journal"
    " WHERE seq>? AND seq<=? ORDER BY seq"
)
_MARKS = (
    "SELECT seq, ?, session_id, coalesce(json_extract(detail_json,'$.message_id'),'') FROM journal"
    " WHERE action=? AND seq>? AND seq<=? ORDER BY seq"
)
_decode_seals = msgspec.json.Decoder(list[dict[str, dict[str, str | None]]]).decode


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
    seals: dict[str, dict[str, str | None]]
    """The last seal of each row that was sealed here, by table and key."""


def check_part(connection: sqlite3.Connection, after: int, until: int) -> Part | None:
    """Check the rows after < seq ≤ until; None where one of them needs a closer look."""
    start = ""
    if after:
        row = connection.execute("SELECT digest FROM journal WHERE seq=?", (after,)).fetchone()
        if row is None or row[0] is None:
            return None
        start = row[0]
    counted, last, previous = 0, after, start
    folded: dict[str, dict[str, str | None]] = {}
    rows = connection.execute(_BODIES, (after, until))
    while part := rows.fetchmany(_AT_ONCE):
        bodies, stored, seqs, seals = zip(*part, strict=True)
        # Each row against what is stored of the row before: that one is compared, too.
        before = (previous, *stored)
        digests = [
            sha256(f"{digest}\n{body}".encode()).hexdigest()
            for digest, body in zip(before, bodies, strict=False)
        ]
        if digests != list(stored):
            return None
        counted, last, previous = counted + len(part), seqs[-1], stored[-1]
        for sealed in _decode_seals(f"[{','.join(filter(None, seals))}]"):
            for table, keys in sealed.items():
                if table in folded:
                    folded[table].update(keys)
                else:
                    folded[table] = keys
    if last != until:
        return None
    begun: dict[tuple[str, str], None] = {}
    ended: list[tuple[str, str]] = []
    actions = ("message.started", "message.completed")
    marks = merge(
        *(connection.execute(_MARKS, (n, name, after, until)) for n, name in enumerate(actions))
    )
    for _, is_end, session_id, message_id in marks:
        message = (session_id, message_id)
        if not is_end:
            begun[message] = None
        elif message in begun:
            del begun[message]
        else:
            ended.append(message)
    return Part(counted, start, previous, tuple(begun), tuple(ended), folded)


def main(uri: str, after: str, until: str) -> int:
    """Check a part of the store at ``uri`` and print the answer as JSON; returns the exit code."""
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10)
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cache_size=-16000")
        part = check_part(connection, int(after), int(until))
    except (sqlite3.Error, msgspec.DecodeError, UnicodeError, TypeError):
        part = None  # a row that is read one by one says what is wrong with it
    sys.stdout.buffer.write(msgspec.json.encode(part))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Parts of the journal that cost the same in any store: one session's rows, the newest rows of a type."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import SELECT, Row, read_row

READ = 1_000
"""Rows that are read at a time."""


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

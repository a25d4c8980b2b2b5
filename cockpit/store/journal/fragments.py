"""Provisional rows of the journal: the fragments of a message that streams, until its completed row.

They are outside the chain. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3


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
    """Return (seq, text) of a message's fragments, in order; with ``newest`` only the last so many."""
    rows = connection.execute(
        "SELECT seq, json_extract(detail_json, '$.text') FROM journal WHERE digest IS NULL"
        " AND session_id=? AND json_extract(detail_json, '$.message_id')=?"
        " ORDER BY seq DESC LIMIT ?",
        (session_id, message_id, newest),
    )
    return [(seq, text or "") for seq, text in rows][::-1]


def cut_fragment(connection: sqlite3.Connection, seq: int, text: str) -> None:
    """Replace the text of a provisional row."""
    connection.execute(
        "UPDATE journal SET detail_json=json_set(detail_json, '$.text', ?)"
        " WHERE seq=? AND digest IS NULL",
        (text, seq),
    )

"""One row's place in the chain: whether it follows from the row before it, and the next one from it.

This takes the same time in any journal. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3

from cockpit.store.journal import anchor, journal


def is_linked(connection: sqlite3.Connection, seq: int) -> bool:
    """Tell whether a row follows from the row of the chain before it, and the next one from it.

    Rows that pruning left have no neighbours; a verification of the journal checks them by their sum.
    """
    start = anchor.find(connection) or anchor.START
    if seq <= start.seq:
        return True
    before = connection.execute(
        "SELECT digest FROM journal WHERE seq<? AND seq>? AND digest IS NOT NULL"
        " ORDER BY seq DESC LIMIT 1",
        (seq, start.seq),
    ).fetchone()
    following = connection.execute(
        f"{journal.SELECT_SEALED} WHERE seq>=? AND digest IS NOT NULL ORDER BY seq LIMIT 2", (seq,)
    ).fetchall()
    previous = start.digest if before is None else before[0]
    for *columns, sealed in following:
        values = tuple(columns)
        if not journal.follows(previous, values, sealed):
            return False
        previous = values[-1]
    if len(following) == 1:  # the last row
        (end,) = connection.execute("SELECT digest FROM journal_head").fetchone()
        return bool(end == previous)
    return bool(following) and following[0][0] == seq

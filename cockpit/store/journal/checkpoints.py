"""The checkpoint of the metrics: what was counted in the journal up to one of its rows.

It saves reading the journal from its first row. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from cockpit.store.db.transaction import Tx
from cockpit.store.journal import prune_anchor

_NAME = "metrics"


class Checkpoint(Struct, frozen=True):
    """A row of ``journal_checkpoints``."""

    seq: int
    """A row of the chain; everything up to it is covered."""
    digest: str
    """The digest of that row."""
    body_json: str
    stored_at: str


def find(connection: sqlite3.Connection) -> Checkpoint | None:
    """Return the checkpoint, if the journal still has its row and that row its digest.

    None where there is none, where the row was pruned, and where it was changed.
    """
    row = connection.execute(
        "SELECT seq, c.digest, body_json, stored_at FROM journal_checkpoints c"
        " JOIN journal USING(seq) WHERE name=? AND journal.digest=c.digest",
        (_NAME,),
    ).fetchone()
    if row is None:
        return None
    checkpoint = Checkpoint(*row)
    pruned = prune_anchor.find(connection)
    return None if pruned is not None and pruned.seq >= checkpoint.seq else checkpoint


def last_sealed(connection: sqlite3.Connection, until: int) -> tuple[int, str]:
    """Return the newest row of the chain up to ``until`` and its digest; (0, '') where there is none."""
    row = connection.execute(
        "SELECT seq, digest FROM journal WHERE digest IS NOT NULL AND seq<=?"
        " ORDER BY seq DESC LIMIT 1",
        (until,),
    ).fetchone()
    return (0, "") if row is None else (int(row[0]), str(row[1]))


def store_checkpoint(tx: Tx, seq: int, digest: str, body_json: str) -> None:
    """Replace the checkpoint."""
    tx.execute(
        "INSERT OR REPLACE INTO journal_checkpoints VALUES (?,?,?,?,?)",
        (_NAME, seq, digest, body_json, tx.now()),
    )

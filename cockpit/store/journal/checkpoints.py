"""Checkpoints of the journal: how far it was verified, and what was counted up to there.

They save reading the journal from its first row. They lie in the same file as the journal: whoever can
change the one can change the other, so a checkpoint shows that nothing changed by mistake since, and not
that nobody wanted to. ``cockpit debug journal verify`` reads every row and uses none. Specified in
``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3
from typing import Literal

import msgspec
from msgspec import Struct

from cockpit.core.errors import StoreError
from cockpit.core.read_record import decode_json
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import prune_anchor, verify_chain

Name = Literal["verified", "metrics"]


class Checkpoint(Struct, frozen=True):
    """A row of ``journal_checkpoints``."""

    seq: int
    """A row of the chain; everything up to it is covered."""
    digest: str
    """The digest of that row."""
    body_json: str
    stored_at: str


def find(connection: sqlite3.Connection, name: Name) -> Checkpoint | None:
    """Return the checkpoint, if the journal still has its row and that row its digest.

    None where there is none, where the row was pruned, and where it was changed.
    """
    row = connection.execute(
        "SELECT seq, c.digest, body_json, stored_at FROM journal_checkpoints c"
        " JOIN journal USING(seq) WHERE name=? AND journal.digest=c.digest",
        (name,),
    ).fetchone()
    if row is None:
        return None
    checkpoint = Checkpoint(*row)
    pruned = prune_anchor.find(connection)
    return None if pruned is not None and pruned.seq >= checkpoint.seq else checkpoint


def verify_recent(connection: sqlite3.Connection) -> verify_chain.Verdict:
    """Verify the rows since the last verification that was remembered; all rows where there is none."""
    checkpoint = find(connection, "verified")
    since = None
    if checkpoint is not None:
        since = decode_json(checkpoint.body_json, verify_chain.Verified)
    return verify_chain.verify(connection, since)


def remember_verdict(store: Store, verdict: verify_chain.Verdict) -> None:
    """Let the next recent verification go on from here; only after a sound one.

    A store that cannot be written now is left as it is: the next one reads a few rows more.
    """
    verified = verdict.checkpoint
    if verified is None:
        return
    body = msgspec.json.encode(verified).decode()
    try:
        store.write_now(
            lambda tx: store_checkpoint(tx, "verified", verified.seq, verified.digest, body)
        )
    except StoreError:
        return


def last_sealed(connection: sqlite3.Connection, until: int) -> tuple[int, str]:
    """Return the newest row of the chain up to ``until`` and its digest; (0, '') where there is none."""
    row = connection.execute(
        "SELECT seq, digest FROM journal WHERE digest IS NOT NULL AND seq<=?"
        " ORDER BY seq DESC LIMIT 1",
        (until,),
    ).fetchone()
    return (0, "") if row is None else (int(row[0]), str(row[1]))


def store_checkpoint(tx: Tx, name: Name, seq: int, digest: str, body_json: str) -> None:
    """Replace the checkpoint."""
    tx.execute(
        "INSERT OR REPLACE INTO journal_checkpoints VALUES (?,?,?,?,?)",
        (name, seq, digest, body_json, tx.now()),
    )

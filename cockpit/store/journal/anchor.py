"""The journal's anchor: where the journal begins after its first rows were pruned.

It has the digest of the last pruned row, so that the rest of the chain verifies, and what was counted
in the pruned rows. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Anchor:
    """The row of ``journal_anchor``."""

    seq: int
    """The last row that was pruned."""
    digest: str
    """The digest that the next row of the chain follows from."""
    sealed: int
    """How many rows of the chain were pruned."""
    metrics_json: str
    """What metrics count in the pruned rows."""
    archive: str
    """The file name of the archive that the rows are in."""
    pruned_at: str


def find(connection: sqlite3.Connection) -> Anchor | None:
    """Return the anchor; None for a journal that was never pruned."""
    row = connection.execute(
        "SELECT seq, digest, sealed, metrics_json, archive, pruned_at FROM journal_anchor"
    ).fetchone()
    return None if row is None else Anchor(*row)

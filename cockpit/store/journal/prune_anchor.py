"""The journal's anchor: where the journal begins after its first rows were pruned.

It has the digest of the last pruned row, so that the rest of the chain verifies, and what was counted
in the pruned rows. Rows before it that are still read stay in the table; the anchor has their number and
the sum of their digests. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from cockpit.core.canonical_json import canonical_json, text_digest

_MODULUS = 1 << 256


class Anchor(Struct, frozen=True):
    """The row of ``journal_anchor``."""

    seq: int
    """The last row that was pruned."""
    digest: str
    """The digest that the next row of the chain follows from."""
    sealed: int
    """How many rows of the chain are before the next row."""
    metrics_json: str
    """What metrics count in the rows before the next row."""
    archive: str
    """The file name of the newest archive of pruned rows."""
    pruned_at: str
    kept: int = 0
    """How many rows of the chain stay before the next row."""
    kept_sum: str = ""
    """The sum of their digests, see :func:`add_digests`."""

    def own_digest(self) -> str:
        """The digest of the anchor itself."""
        return text_digest(canonical_json(list(astuple(self))))


START = Anchor(0, "", 0, "{}", "", "")
"""The anchor of a journal that was never pruned."""

_NAMES = Anchor.__struct_fields__


def find(connection: sqlite3.Connection) -> Anchor | None:
    """Return the anchor; None for a journal that was never pruned."""
    row = connection.execute(f"SELECT {', '.join(_NAMES)} FROM journal_anchor").fetchone()  # noqa: S608 - fixed column names
    return None if row is None else Anchor(*row)


def is_sound(connection: sqlite3.Connection, anchor: Anchor) -> bool:
    """Tell whether the stored anchor is as cockpit wrote it."""
    (own_digest,) = connection.execute("SELECT own_digest FROM journal_anchor").fetchone()
    try:
        return bool(own_digest == anchor.own_digest())
    except TypeError:
        return False  # A column contains bytes; cockpit writes no such row.


def store_anchor(connection: sqlite3.Connection, anchor: Anchor) -> None:
    """Replace the anchor, in the transaction that deletes the rows before it."""
    connection.execute(
        f"INSERT OR REPLACE INTO journal_anchor(one, {', '.join(_NAMES)}, own_digest)"  # noqa: S608 - fixed column names
        f" VALUES (1, {','.join('?' * len(_NAMES))}, ?)",
        (*astuple(anchor), anchor.own_digest()),
    )


def add_digests(
    total: str, added: Iterable[tuple[Any, ...]], removed: Iterable[tuple[Any, ...]] = ()
) -> str:
    """Return a sum of row digests with rows added and removed; ``""`` is the sum of no rows.

    A row is the tuple of its columns. A sum, because rows leave it in any order.
    """
    number = int(total or "0", 16)
    number += sum(_number(row) for row in added) - sum(_number(row) for row in removed)
    number %= _MODULUS
    return f"{number:064x}" if number else ""


def _number(row: tuple[Any, ...]) -> int:
    return int(text_digest(canonical_json(list(row))), 16)

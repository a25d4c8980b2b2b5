"""The guards that the user approved: a row each with their sources.

A guard runs as it was approved, whatever its file says by then: an agent that edits the file changes nothing.
Specified in ``docs/reference/guards.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.tools import ApprovalChanged

_SELECT = "SELECT guard_id, digest, sources_json, approved_by, approved_at FROM approved_guards"


class ApprovedGuard(Struct, frozen=True):
    """One row of ``approved_guards``."""

    guard_id: str
    """``PLACE:NAME``: ``project:no_friday_deploys``."""
    digest: str
    sources: Mapping[str, str]
    """By path below its folder: the texts of its file and of what that imports from there."""
    approved_by: str
    approved_at: str


def approve(tx: Tx, guard_id: str, digest: str, sources: Mapping[str, str], *, by: str) -> None:
    """Store that the user approved these sources, in place of an earlier version."""
    tx.execute(
        "INSERT INTO approved_guards VALUES (?,?,?,?,?) ON CONFLICT(guard_id) DO UPDATE SET"
        " digest=excluded.digest, sources_json=excluded.sources_json,"
        " approved_by=excluded.approved_by, approved_at=excluded.approved_at",
        (guard_id, digest, canonical_json(dict(sources)), by, tx.now()),
    )
    approved = ApprovalChanged(subject="guard", id=guard_id, status="approved", digest=digest)
    tx.journal(approved, actor=by)


def forget(tx: Tx, guard_id: str, *, by: str) -> bool:
    """Withdraw the approval of a guard; returns False where there was none."""
    row = tx.execute("SELECT digest FROM approved_guards WHERE guard_id=?", (guard_id,)).fetchone()
    if row is None:
        return False
    tx.execute("DELETE FROM approved_guards WHERE guard_id=?", (guard_id,))
    forgotten = ApprovalChanged(subject="guard", id=guard_id, status="forgotten", digest=row[0])
    tx.journal(forgotten, actor=by)
    return True


def select_all(connection: sqlite3.Connection) -> list[ApprovedGuard]:
    """Read all approvals, by id."""
    rows = connection.execute(f"{_SELECT} ORDER BY guard_id").fetchall()
    return [
        ApprovedGuard(guard_id, digest, parse_json(sources), by, at)
        for guard_id, digest, sources, by, at in rows
    ]


def has_any(connection: sqlite3.Connection) -> bool:
    """Tell whether any guard is approved."""
    return connection.execute("SELECT 1 FROM approved_guards LIMIT 1").fetchone() is not None

"""The tools that the user approved: a row each. Specified in ``docs/reference/tools.md``."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.tools import ApprovalChanged

_SELECT = (
    "SELECT tool_id, name, kind, place, digest, definition_json, approved_by, approved_at"
    " FROM approved_tools"
)


class ApprovedTool(Struct, frozen=True):
    """One row of ``approved_tools``."""

    tool_id: str
    name: str
    kind: str
    """``own`` or ``mcp``."""
    place: str
    digest: str
    definition: Mapping[str, Any]
    """The tool as it was approved."""
    approved_by: str
    approved_at: str


def approve(tx: Tx, definition: Mapping[str, Any], *, by: str) -> None:
    """Store that the user approved the tool of this ``definition``, in place of an earlier version."""
    tool_id, digest = str(definition["tool_id"]), str(definition["digest"])
    name, kind, place = (str(definition[each]) for each in ("name", "kind", "place"))
    tx.execute(
        "INSERT INTO approved_tools VALUES (?,?,?,?,?,?,?,?) ON CONFLICT(tool_id) DO UPDATE SET"
        " name=excluded.name, kind=excluded.kind, place=excluded.place, digest=excluded.digest,"
        " definition_json=excluded.definition_json, approved_by=excluded.approved_by,"
        " approved_at=excluded.approved_at",
        (tool_id, name, kind, place, digest, canonical_json(dict(definition)), by, tx.now()),
    )
    approved = ApprovalChanged(subject="tool", id=tool_id, status="approved", digest=digest)
    tx.journal(approved, actor=by)


def forget(tx: Tx, tool_id: str, *, by: str, reason: str = "") -> bool:
    """Withdraw the approval of a tool; returns False where there was none."""
    row = tx.execute("SELECT digest FROM approved_tools WHERE tool_id=?", (tool_id,)).fetchone()
    if row is None:
        return False
    tx.execute("DELETE FROM approved_tools WHERE tool_id=?", (tool_id,))
    forgotten = ApprovalChanged(
        subject="tool", id=tool_id, status="forgotten", digest=row[0], reason=reason
    )
    tx.journal(forgotten, actor=by)
    return True


def select_all(connection: sqlite3.Connection) -> list[ApprovedTool]:
    """Read all approvals, by id."""
    return [_read(row) for row in connection.execute(f"{_SELECT} ORDER BY tool_id")]


def find(connection: sqlite3.Connection, tool_id: str) -> ApprovedTool | None:
    """Read the approval of a tool; None without one."""
    row = connection.execute(f"{_SELECT} WHERE tool_id=?", (tool_id,)).fetchone()
    return None if row is None else _read(row)


def has_any(connection: sqlite3.Connection) -> bool:
    """Tell whether any tool is approved."""
    return connection.execute("SELECT 1 FROM approved_tools LIMIT 1").fetchone() is not None


def _read(row: tuple[str, str, str, str, str, str, str, str]) -> ApprovedTool:
    tool_id, name, kind, place, digest, definition, by, at = row
    return ApprovedTool(tool_id, name, kind, place, digest, parse_json(definition), by, at)

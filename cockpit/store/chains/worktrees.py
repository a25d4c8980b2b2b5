"""Git worktrees that cockpit created: one for each task in progress and one for each chain.

The row is written before the worktree is created and outlives it, so a crash leaves no directory
that the store does not know. Specified in ``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.core.errors import NotFound
from cockpit.store.db.transaction import Tx

TAKE = "take_worktree"
"""The type of the proposed action that merges a worktree's change."""
DROP = "drop_worktree"
"""The type of the proposed action that removes a worktree and its branch."""
TYPES = (TAKE, DROP)
"""The types of actions that end a worktree."""


class Worktree(msgspec.Struct, frozen=True):
    """One row of ``worktrees``."""

    name: str
    task_id: str | None
    """None for the worktree of a chain."""
    chain_id: str
    path: str
    branch: str
    base_commit: str
    status: str
    """``active``, ``merged``, ``conflict``, ``kept`` or ``removed``.

    ``merged``: its commits are in the chain's branch; ``conflict``: they could not be merged;
    ``kept``: its task is blocked; ``removed``: worktree and branch are deleted.
    """
    merged_commit: str | None
    conflicts: tuple[str, ...]
    """The files that could not be merged."""
    created_at: str
    updated_at: str

    def body(self) -> dict[str, Any]:
        """Return it as the journal and commands print it."""
        return {
            "name": self.name,
            "task_id": self.task_id,
            "chain_id": self.chain_id,
            "path": self.path,
            "branch": self.branch,
            "base_commit": self.base_commit,
            "status": self.status,
            "merged_commit": self.merged_commit,
            "conflicts": list(self.conflicts),
        }


_SELECT = (
    "SELECT name, task_id, chain_id, path, branch, base_commit, status, merged_commit, conflicts,"
    " created_at, updated_at FROM worktrees"
)


def register(
    tx: Tx,
    name: str,
    *,
    task_id: str | None,
    chain_id: str,
    path: str,
    branch: str,
    base_commit: str,
) -> Worktree:
    """Record a worktree that is about to be created, replacing an earlier one of that name."""
    now = tx.now()
    tx.execute(
        "INSERT INTO worktrees(name, task_id, chain_id, path, branch, base_commit, created_at,"
        " updated_at) VALUES (?,?,?,?,?,?,?,?) ON CONFLICT(name) DO UPDATE SET"
        " chain_id=excluded.chain_id, path=excluded.path, branch=excluded.branch,"
        " base_commit=excluded.base_commit, status='active', merged_commit=NULL, conflicts='[]',"
        " updated_at=excluded.updated_at",
        (name, task_id, chain_id, path, branch, base_commit, now, now),
    )
    return load(tx.connection, name)


def move_all(tx: Tx, folder: str) -> None:
    """Record that all worktrees are in ``folder`` now."""
    for row in select(tx.connection):
        tx.execute(
            "UPDATE worktrees SET path=?, updated_at=? WHERE name=?",
            (f"{folder}/{row.name}", tx.now(), row.name),
        )


def set_status(
    tx: Tx,
    name: str,
    status: str,
    *,
    merged_commit: str | None = None,
    conflicts: Sequence[str] = (),
) -> Worktree:
    """Put the worktree into ``status``; without a difference do nothing."""
    before = load(tx.connection, name)
    if before.status == status and before.conflicts == tuple(conflicts):
        return before
    tx.execute(
        "UPDATE worktrees SET status=?, merged_commit=coalesce(?, merged_commit), conflicts=?,"
        " updated_at=? WHERE name=?",
        (status, merged_commit, canonical_json(list(conflicts)), tx.now(), name),
    )
    return load(tx.connection, name)


def load(connection: sqlite3.Connection, name: str) -> Worktree:
    """Read the worktree of that name. Raises :class:`NotFound`."""
    worktree = find(connection, name)
    if worktree is None:
        raise NotFound(f"There is no worktree {name}; `cockpit chain worktrees` lists them.")
    return worktree


def find(connection: sqlite3.Connection, name: str) -> Worktree | None:
    """Read the worktree of that name, or None."""
    row = connection.execute(f"{_SELECT} WHERE name=?", (name,)).fetchone()
    return None if row is None else _read(row)


def select(connection: sqlite3.Connection, *, removed: bool = False) -> list[Worktree]:
    """Read all worktrees, the oldest first; ``removed`` ones only when asked for."""
    where = "" if removed else " WHERE status <> 'removed'"
    rows = connection.execute(f"{_SELECT}{where} ORDER BY created_at, name")
    return [_read(row) for row in rows]


def _read(row: tuple[Any, ...]) -> Worktree:
    values = list(row)
    values[8] = tuple(parse_json(values[8]))
    return Worktree(*values)

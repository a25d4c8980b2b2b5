"""Working trees that cockpit made, one for each task under way and one for each chain.

The row is written before the tree is made and outlives it: what a crash left on the disk is known by
name. Source: design of work, "Doing a task".
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import NotFound
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action

STATUSES = ("active", "merged", "conflict", "kept", "removed")
"""``active``: worked in; ``merged``: its commits are in the chain's branch; ``conflict``: they could
not be merged; ``kept``: its task is blocked; ``removed``: tree and branch are gone."""

_ENTERED = {
    "merged": Action.WORKTREE_MERGED,
    "conflict": Action.WORKTREE_CONFLICT,
    "kept": Action.WORKTREE_KEPT,
    "removed": Action.WORKTREE_REMOVED,
}


@dataclass(frozen=True, slots=True)
class Worktree:
    """One row of ``worktrees``. ``task_id`` is None for a chain's own; ``conflicts`` are the files
    that could not be merged."""

    name: str
    task_id: str | None
    chain_id: str
    path: str
    branch: str
    base_commit: str
    status: str
    merged_commit: str | None
    conflicts: tuple[str, ...]
    created_at: str
    updated_at: str

    def body(self) -> dict[str, Any]:
        """As the journal and commands give it out."""
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
    unseen: int = 0,
) -> Worktree:
    """Say that a tree is about to be made, in place of an earlier one of that name.

    ``unseen`` counts the changes in the person's checkout that it does not hold.
    """
    now = tx.now()
    tx.execute(
        "INSERT INTO worktrees(name, task_id, chain_id, path, branch, base_commit, created_at,"
        " updated_at) VALUES (?,?,?,?,?,?,?,?) ON CONFLICT(name) DO UPDATE SET"
        " chain_id=excluded.chain_id, path=excluded.path, branch=excluded.branch,"
        " base_commit=excluded.base_commit, status='active', merged_commit=NULL, conflicts='[]',"
        " updated_at=excluded.updated_at",
        (name, task_id, chain_id, path, branch, base_commit, now, now),
    )
    worktree = load(tx.connection, name)
    tx.journal(Action.WORKTREE_CREATED, detail={**worktree.body(), "unseen_changes": unseen})
    return worktree


def set_status(
    tx: Tx,
    name: str,
    status: str,
    *,
    merged_commit: str | None = None,
    conflicts: Sequence[str] = (),
) -> Worktree:
    """Put the tree into ``status`` and journal it; one that is in it already is left alone."""
    before = load(tx.connection, name)
    if before.status == status and before.conflicts == tuple(conflicts):
        return before
    tx.execute(
        "UPDATE worktrees SET status=?, merged_commit=coalesce(?, merged_commit), conflicts=?,"
        " updated_at=? WHERE name=?",
        (status, merged_commit, canonical_json(list(conflicts)), tx.now(), name),
    )
    worktree = load(tx.connection, name)
    if status in _ENTERED:
        tx.journal(_ENTERED[status], detail=worktree.body())
    return worktree


def load(connection: sqlite3.Connection, name: str) -> Worktree:
    """The tree of that name. Raises :class:`NotFound`."""
    worktree = find(connection, name)
    if worktree is None:
        raise NotFound(f"There is no worktree {name}; `cockpit worktrees list` names them.")
    return worktree


def find(connection: sqlite3.Connection, name: str) -> Worktree | None:
    """As :func:`load`, None where there is none."""
    row = connection.execute(f"{_SELECT} WHERE name=?", (name,)).fetchone()
    return None if row is None else _read(row)


def select(connection: sqlite3.Connection, *, removed: bool = False) -> list[Worktree]:
    """All trees, the oldest first; ``removed`` ones only when asked for."""
    where = "" if removed else " WHERE status <> 'removed'"
    rows = connection.execute(f"{_SELECT}{where} ORDER BY created_at, name")
    return [_read(row) for row in rows]


def _read(row: tuple[Any, ...]) -> Worktree:
    values = list(row)
    values[8] = tuple(json.loads(values[8]))
    return Worktree(*values)

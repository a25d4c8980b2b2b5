"""What a person says of a task while it is worked on holds: it is put down before its next step.

An agent's word for it counts for nothing: how its task stands is the engine's to say. Source: design of
work, "Doing a task".
"""

from __future__ import annotations

import sqlite3

from cockpit.core.errors import CockpitError
from cockpit.store.backlog import tasks
from cockpit.store.chains import worktrees
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action

_PERSON = "person"
_SAID = {"blocked": "blocked", "archived": "archived", "done": "said to be done"}


class SetAside(CockpitError):
    """A person blocked, archived or finished the task meanwhile."""

    code = "set_aside"


def user_decision(connection: sqlite3.Connection, task_id: str) -> str:
    """``blocked``, ``archived`` or ``done`` when a person was the last to say how the task stands, and
    said that; else empty."""
    status = tasks.load(connection, task_id).status
    if status not in _SAID:
        return ""
    row = connection.execute(
        "SELECT actor FROM journal WHERE action=? AND json_extract(detail_json, '$.task_id')=?"
        " ORDER BY seq DESC LIMIT 1",
        (Action.TASK_STATUS_CHANGED, task_id),
    ).fetchone()
    return status if row is not None and row[0] == _PERSON else ""


def raise_if_set_aside(tx: Tx, task_id: str) -> None:
    """Raises :class:`SetAside` when a person wants the task to be gone on with no more."""
    if said := user_decision(tx.connection, task_id):
        raise SetAside(f"{task_id} was {_SAID[said]} meanwhile; what was made of it is kept")


def keep_worktree(tx: Tx, task_id: str) -> None:
    """Keep the task's tree as it is, for whoever goes on with it."""
    tree = worktrees.find(tx.connection, task_id)
    if tree is not None and tree.status == "active":
        worktrees.set_status(tx, tree.name, "kept")

"""The user's own word about a task's status, which an agent's does not overrule.

See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import sqlite3

from cockpit.store.backlog import tasks
from cockpit.store.journal.event_types import Action

_USER = "person"
USER_DECISIONS = {"blocked": "blocked", "archived": "archived", "done": "marked as done"}
"""Statuses with which a user ends a task, and how a message says so."""


def user_decision(connection: sqlite3.Connection, task_id: str) -> str:
    """Return ``blocked``, ``archived`` or ``done`` when the user set that status last; else empty."""
    status = tasks.load(connection, task_id).status
    if status not in USER_DECISIONS:
        return ""
    row = connection.execute(
        "SELECT actor FROM journal WHERE action=? AND json_extract(detail_json, '$.task_id')=?"
        " ORDER BY seq DESC LIMIT 1",
        (Action.TASK_STATUS_CHANGED, task_id),
    ).fetchone()
    return status if row is not None and row[0] == _USER else ""

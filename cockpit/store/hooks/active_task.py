"""Which task an agent's session works on, for processes that share nothing but the store."""

from __future__ import annotations

import sqlite3

from cockpit.store.db.transaction import Tx


def set_active(tx: Tx, agent_session: str, task_id: str) -> None:
    """From now on the session works on that task."""
    tx.execute(
        "INSERT INTO active_task(agent_session, task_id, started_at) VALUES (?,?,?)"
        " ON CONFLICT(agent_session) DO UPDATE SET task_id=excluded.task_id,"
        " started_at=excluded.started_at WHERE task_id <> excluded.task_id",
        (agent_session, task_id, tx.now()),
    )


def active(connection: sqlite3.Connection, agent_session: str) -> str | None:
    """The task that the session works on, or None."""
    row = connection.execute(
        "SELECT task_id FROM active_task WHERE agent_session=?", (agent_session,)
    ).fetchone()
    return None if row is None else str(row[0])


def sessions_on(connection: sqlite3.Connection, task_id: str) -> list[str]:
    """The sessions that work on a task, the one that took it up last first."""
    found = connection.execute(
        "SELECT agent_session FROM active_task WHERE task_id=? ORDER BY started_at DESC", (task_id,)
    )
    return [str(row[0]) for row in found]


def clear(tx: Tx, agent_session: str) -> None:
    """The session works on nothing any more."""
    tx.execute("DELETE FROM active_task WHERE agent_session=?", (agent_session,))


def leave(tx: Tx, task_id: str) -> None:
    """Nobody works on the task any more."""
    tx.execute("DELETE FROM active_task WHERE task_id=?", (task_id,))

"""Events that agents' hooks reported and that are not ingested yet (``hook_pending``).

Hook processes use this module while an agent waits for them, so it imports nothing but SQLite, and
times come from the event rather than from a clock. Events that concern no task are stored as well.
Specified in ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LEASE_MS = 15_000
"""Milliseconds that one process ingests alone, unless it renews its lease."""
_LONGEST_LEASE_MS = 60_000
ATTEMPTS = 3
"""Failed attempts after which an event stays in the table for the user to inspect."""


class HookEvent:
    """One event as it is stored.

    ``body`` is JSON in ASCII with its secrets masked; ``at`` is a time as the store has it;
    ``task_id`` is None until the task of the session is known. ``urgent`` events end the ingester's
    wait at once. A plain class, because importing dataclasses takes as long as everything else in a
    hook call.
    """

    __slots__ = ("agent", "at", "body", "event", "key", "session", "task_id", "urgent")

    def __init__(
        self,
        key: str,
        at: str,
        agent: str,
        session: str,
        event: str,
        body: str,
        *,
        urgent: bool = False,
        task_id: str | None = None,
    ) -> None:
        self.key = key
        self.at = at
        self.agent = agent
        self.session = session
        self.event = event
        self.body = body
        self.urgent = urgent
        self.task_id = task_id


def connect(path: str, busy_ms: int) -> sqlite3.Connection:
    """Open an existing database; statements wait at most ``busy_ms`` milliseconds for locks."""
    connection = sqlite3.connect(path, timeout=busy_ms / 1000, isolation_level=None)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def receive(
    connection: sqlite3.Connection,
    event: HookEvent,
    *,
    now_ms: int,
    works_on: str | None = None,
    leaves: str | None = None,
) -> bool:
    """Store ``event`` in its own transaction; returns whether the caller has to start ingesting.

    ``works_on`` is the task that the session has just claimed, ``leaves`` the one that it has
    finished. Raises ``sqlite3.Error``; then nothing is stored.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if works_on is not None:
            set_active_task(connection, event.session, works_on, event.at)
        task_id = find_active_task(connection, event.session)
        insert(connection, event, task_id)
        if leaves is not None:
            clear_active_task(connection, event.session, leaves)
        wake = acquire_lease(connection, now_ms)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return wake


def insert(connection: sqlite3.Connection, event: HookEvent, task_id: str | None) -> None:
    """Store the event; storing it again changes nothing."""
    connection.execute(
        "INSERT INTO hook_pending(event_key, at, agent, agent_session, event, task_id, urgent,"
        " body_json) VALUES (?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
        (
            event.key,
            event.at,
            event.agent,
            event.session,
            event.event,
            task_id,
            int(event.urgent),
            event.body,
        ),
    )


def find_active_task(connection: sqlite3.Connection, session: str) -> str | None:
    """Find the task that an agent's session works on.

    It is the task that the session claimed, else the only task in progress, else None.
    """
    row = connection.execute(
        "SELECT task_id FROM active_task WHERE agent_session=?", (session,)
    ).fetchone()
    if row is not None:
        return str(row[0])
    rows = connection.execute(
        "SELECT task_id FROM tasks WHERE status='in_progress' LIMIT 2"
    ).fetchall()
    return str(rows[0][0]) if len(rows) == 1 else None


def set_active_task(connection: sqlite3.Connection, session: str, task_id: str, at: str) -> None:
    """Record that the session works on that task; an unknown task changes nothing."""
    connection.execute(
        "INSERT INTO active_task(agent_session, task_id, started_at)"
        " SELECT ?, task_id, ? FROM tasks WHERE task_id=?"
        " ON CONFLICT(agent_session) DO UPDATE SET task_id=excluded.task_id,"
        " started_at=excluded.started_at WHERE task_id<>excluded.task_id",
        (session, at, task_id),
    )


def clear_active_task(connection: sqlite3.Connection, session: str, task_id: str) -> None:
    """Record that the session no longer works on that task."""
    connection.execute(
        "DELETE FROM active_task WHERE agent_session=? AND task_id=?", (session, task_id)
    )


def leave_task(connection: sqlite3.Connection, task_id: str) -> None:
    """Record that no session works on the task any more."""
    connection.execute("DELETE FROM active_task WHERE task_id=?", (task_id,))


def acquire_lease(connection: sqlite3.Connection, now_ms: int) -> bool:
    """Take the ingester's lease; returns False while another process holds it."""
    done = connection.execute(
        "UPDATE hook_absorber SET leased_until=? WHERE leased_until<? OR leased_until>?",
        (now_ms + LEASE_MS, now_ms, now_ms + _LONGEST_LEASE_MS),
    )
    return done.rowcount > 0


def renew_lease(connection: sqlite3.Connection, now_ms: int) -> None:
    """Extend the lease, which the caller holds."""
    connection.execute("UPDATE hook_absorber SET leased_until=?", (now_ms + LEASE_MS,))


def release_lease(connection: sqlite3.Connection) -> bool:
    """Release the lease if nothing is left to ingest; returns False otherwise."""
    if count_waiting(connection):
        return False
    connection.execute("UPDATE hook_absorber SET leased_until=0")
    return True


def count_waiting(connection: sqlite3.Connection, *, urgent: bool = False) -> int:
    """Count the events that wait to be ingested, or only the urgent ones."""
    row = connection.execute(
        "SELECT count(*) FROM hook_pending WHERE attempts<? AND urgent>=?", (ATTEMPTS, int(urgent))
    ).fetchone()
    return int(row[0])


def has_waiting_for(connection: sqlite3.Connection, task_id: str) -> bool:
    """Tell whether an event about that task waits to be ingested."""
    row = connection.execute(
        "SELECT 1 FROM hook_pending WHERE attempts<? AND task_id=? LIMIT 1", (ATTEMPTS, task_id)
    ).fetchone()
    return row is not None


def has_unmerged(connection: sqlite3.Connection) -> bool:
    """Tell whether an event waits that may change work in progress."""
    row = connection.execute(
        "SELECT 1 FROM hook_pending WHERE attempts<? AND event LIKE 'PostToolUse%' LIMIT 1",
        (ATTEMPTS,),
    ).fetchone()
    return row is not None


def count_failed(connection: sqlite3.Connection) -> int:
    """Count the events that could not be ingested."""
    row = connection.execute(
        "SELECT count(*) FROM hook_pending WHERE attempts>=?", (ATTEMPTS,)
    ).fetchone()
    return int(row[0])


def select_oldest(connection: sqlite3.Connection, most: int) -> Sequence[HookEvent]:
    """Read the waiting events that happened first."""
    rows = connection.execute(
        "SELECT event_key, at, agent, agent_session, event, body_json, urgent, task_id"
        " FROM hook_pending WHERE attempts<? ORDER BY event_key LIMIT ?",
        (ATTEMPTS, most),
    )
    return [
        HookEvent(
            *row[:6], urgent=bool(row[6]), task_id=row[7]
        )  # the columns' order is the fields'
        for row in rows
    ]


def delete_events(connection: sqlite3.Connection, keys: Sequence[str]) -> None:
    """Delete events that were ingested."""
    connection.executemany("DELETE FROM hook_pending WHERE event_key=?", [(key,) for key in keys])


def count_failure(connection: sqlite3.Connection, key: str) -> None:
    """Record that ingesting the event failed once more."""
    connection.execute("UPDATE hook_pending SET attempts=attempts+1 WHERE event_key=?", (key,))

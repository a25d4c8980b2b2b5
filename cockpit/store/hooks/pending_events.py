"""What agents' hooks have told and nobody has absorbed yet (``hook_pending``).

Written by a process of which an agent waits for the end: nothing is imported here but SQLite itself,
and times come from the event, not from a clock. Events without the kind of a task are kept as well.
"""

from __future__ import annotations

import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LEASE_MS = 15_000
"""How long nobody else absorbs, unless the lease is taken again."""
_LONGEST_LEASE_MS = 60_000
ATTEMPTS = 3
"""An event that could not be absorbed so often is left where it is, for a person to look at."""


class HookEvent:
    """One event as it is kept. ``body`` is JSON in ASCII, its secrets masked; ``task_id`` is None
    until it is known which task the session works on. ``at`` is as everywhere in the store.

    No dataclass: importing those takes as long as everything else in a hook call.
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
    """A connection to a database that is there, which waits ``busy_ms`` for others, and no longer."""
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
    """Keep ``event`` in a transaction of its own; True says that the caller is to see to absorbing.

    ``works_on`` is the task that the session has just taken up, ``leaves`` the one it has finished.
    Raises ``sqlite3.Error``; then nothing is kept.
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
    """Write the event down; the same one a second time changes nothing."""
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
    """The task that an agent's session works on: the one it took up, else the only one in progress."""
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
    """From now on the session works on that task. A task that there is not changes nothing."""
    connection.execute(
        "INSERT INTO active_task(agent_session, task_id, started_at)"
        " SELECT ?, task_id, ? FROM tasks WHERE task_id=?"
        " ON CONFLICT(agent_session) DO UPDATE SET task_id=excluded.task_id,"
        " started_at=excluded.started_at WHERE task_id<>excluded.task_id",
        (session, at, task_id),
    )


def clear_active_task(connection: sqlite3.Connection, session: str, task_id: str) -> None:
    """The session no longer works on that task."""
    connection.execute(
        "DELETE FROM active_task WHERE agent_session=? AND task_id=?", (session, task_id)
    )


def leave_task(connection: sqlite3.Connection, task_id: str) -> None:
    """Record that no session works on the task any more."""
    connection.execute("DELETE FROM active_task WHERE task_id=?", (task_id,))


def acquire_lease(connection: sqlite3.Connection, now_ms: int) -> bool:
    """Take the lease where nobody holds it; False while somebody does."""
    done = connection.execute(
        "UPDATE hook_absorber SET leased_until=? WHERE leased_until<? OR leased_until>?",
        (now_ms + LEASE_MS, now_ms, now_ms + _LONGEST_LEASE_MS),
    )
    return done.rowcount > 0


def renew_lease(connection: sqlite3.Connection, now_ms: int) -> None:
    """Keep the lease, which the caller holds."""
    connection.execute("UPDATE hook_absorber SET leased_until=?", (now_ms + LEASE_MS,))


def release_lease(connection: sqlite3.Connection) -> bool:
    """Give the lease back where nothing is left to absorb; False where something is."""
    if count_waiting(connection):
        return False
    connection.execute("UPDATE hook_absorber SET leased_until=0")
    return True


def count_waiting(connection: sqlite3.Connection, *, urgent: bool = False) -> int:
    """How many events wait to be absorbed, or only those that cut the wait short."""
    row = connection.execute(
        "SELECT count(*) FROM hook_pending WHERE attempts<? AND urgent>=?", (ATTEMPTS, int(urgent))
    ).fetchone()
    return int(row[0])


def has_waiting_for(connection: sqlite3.Connection, task_id: str) -> bool:
    """Whether something about that task waits to be absorbed."""
    row = connection.execute(
        "SELECT 1 FROM hook_pending WHERE attempts<? AND task_id=? LIMIT 1", (ATTEMPTS, task_id)
    ).fetchone()
    return row is not None


def has_unmerged(connection: sqlite3.Connection) -> bool:
    """Whether something waits that may change work in progress."""
    row = connection.execute(
        "SELECT 1 FROM hook_pending WHERE attempts<? AND event LIKE 'PostToolUse%' LIMIT 1",
        (ATTEMPTS,),
    ).fetchone()
    return row is not None


def count_failed(connection: sqlite3.Connection) -> int:
    """How many events could not be absorbed."""
    row = connection.execute(
        "SELECT count(*) FROM hook_pending WHERE attempts>=?", (ATTEMPTS,)
    ).fetchone()
    return int(row[0])


def select_oldest(connection: sqlite3.Connection, most: int) -> Sequence[HookEvent]:
    """The events that happened first."""
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
    """These are done with."""
    connection.executemany("DELETE FROM hook_pending WHERE event_key=?", [(key,) for key in keys])


def count_failure(connection: sqlite3.Connection, key: str) -> None:
    """This one could not be absorbed, once more."""
    connection.execute("UPDATE hook_pending SET attempts=attempts+1 WHERE event_key=?", (key,))

"""Leases on tasks: one process at a time works on a task.

A lease ends when it is released, when it expires, or when its process is gone. Specified in
``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import msgspec

from cockpit.core.clock import format_time
from cockpit.core.errors import Stale
from cockpit.core.processes import current_process, is_process_alive
from cockpit.store.db.transaction import Tx

LEASE_S = 60.0
"""Seconds after which a lease expires that is not renewed."""


class TaskLease(msgspec.Struct, frozen=True):
    """One row of ``task_leases``."""

    task_id: str
    owner: str
    """The name of a worker (``ch-3/s2``), or another name of who works on the task."""
    process: str
    """The process that holds the lease (:func:`cockpit.core.processes.current_process`)."""
    token: str
    expires_at: str


_SELECT = "SELECT task_id, owner, process, token, expires_at FROM task_leases"


def acquire(tx: Tx, task_id: str, owner: str) -> str:
    """Take the task for ``owner`` in this process; returns the lease's token.

    Raises :class:`Stale` while another owner or process holds it.
    """
    current = find_holder(tx.connection, task_id, tx.now())
    if current is not None and (current.owner, current.process) != (owner, current_process()):
        raise Stale(
            f"{current.owner} is working on {task_id} in process {current.process.split('/')[0]} of this"
            " machine. `cockpit chain` shows running chains."
        )
    token = tx.ids.new("lease")
    tx.execute(
        "INSERT INTO task_leases(task_id, owner, process, token, expires_at) VALUES (?,?,?,?,?)"
        " ON CONFLICT(task_id) DO UPDATE SET owner=excluded.owner, process=excluded.process,"
        " token=excluded.token, expires_at=excluded.expires_at",
        (task_id, owner, current_process(), token, _expiry(tx)),
    )
    return token


def renew(tx: Tx, task_id: str, token: str) -> None:
    """Extend the lease. Raises :class:`Stale` when it was lost."""
    updated = tx.execute(
        "UPDATE task_leases SET expires_at=? WHERE task_id=? AND token=?",
        (_expiry(tx), task_id, token),
    )
    if updated.rowcount != 1:
        raise Stale(f"Another process took over {task_id}; this one stops working on it.")


def release(tx: Tx, task_id: str, token: str) -> None:
    """Give up the task; a lease that was lost already is left alone."""
    tx.execute("DELETE FROM task_leases WHERE task_id=? AND token=?", (task_id, token))


def release_all(tx: Tx, owner: str) -> tuple[str, ...]:
    """Release every lease of ``owner``; returns the tasks."""
    rows = tx.execute("SELECT task_id FROM task_leases WHERE owner=? ORDER BY task_id", (owner,))
    tasks = tuple(str(task_id) for (task_id,) in rows)
    tx.execute("DELETE FROM task_leases WHERE owner=?", (owner,))
    return tasks


def find_holder(connection: sqlite3.Connection, task_id: str, now: str) -> TaskLease | None:
    """Read the lease on the task that is valid at ``now``; None without one."""
    row = connection.execute(f"{_SELECT} WHERE task_id=?", (task_id,)).fetchone()
    lease = None if row is None else TaskLease(*row)
    alive = lease is not None and lease.expires_at > now and is_process_alive(lease.process)
    return lease if alive else None


def select_active(connection: sqlite3.Connection, now: str) -> list[TaskLease]:
    """Read every lease that is valid at ``now``, by task."""
    leases = [TaskLease(*row) for row in connection.execute(f"{_SELECT} ORDER BY task_id")]
    return [lease for lease in leases if lease.expires_at > now and is_process_alive(lease.process)]


def _expiry(tx: Tx) -> str:
    return format_time(tx.clock.now() + timedelta(seconds=LEASE_S))

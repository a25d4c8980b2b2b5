"""Claiming the tasks of a batch: unfinished tasks of the scope first, then ready ones from the queue.

Tasks are chosen, leased and journalled in one transaction, so two chains never claim the same task.
A worker that ended or died leaves unfinished tasks; so does a user who unblocks one. See
``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from msgspec import Struct

from cockpit.core.processes import is_process_alive
from cockpit.learn.resume_text import resume_line
from cockpit.store.backlog import queue_scope, tasks
from cockpit.store.backlog.queue_scope import Scope
from cockpit.store.chains import chains, retry_delays, task_leases, task_runs, worker_metrics
from cockpit.store.chains.chains import OPEN, Chain
from cockpit.store.chains.workers import worker_name
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.tasks import TaskTakenUp


class ClaimedTask(Struct, frozen=True):
    """A task whose lease this worker holds."""

    task_id: str
    token: str
    """The lease's token."""
    resume_message: str = ""
    """Where the task was left; empty for a task that starts now."""


def claim_batch(
    tx: Tx, chain: Chain, ordinal: int, *, batch: int, size: int, skipped: Collection[str]
) -> list[ClaimedTask]:
    """Claim at most ``size`` tasks for batch number ``batch`` (from 1) of worker ``ordinal``.

    Unfinished tasks come first, except those in ``skipped`` and those that wait after they broke off.
    Returns an empty list when no task can start. Journals ``task.taken_up`` for each resumed task, and
    ``batch.changed``.
    """
    leased = {lease.task_id for lease in task_leases.select_active(tx.connection, tx.now())}
    unfinished = unfinished_tasks(tx.connection, chain, tx.now())
    delayed = retry_delays.select_delays(tx.connection, unfinished, tx.now())
    resumed = [
        task_id for task_id in unfinished if task_id not in skipped and task_id not in delayed
    ][:size]
    ready = queue_scope.next_batch(
        tx.connection, scope_of(chain), size - len(resumed), leased | set(resumed)
    )
    owner = worker_name(chain.chain_id, ordinal)
    batch_tasks = []
    for task_id in resumed:
        token = task_leases.acquire(tx, task_id, owner)
        batch_tasks.append(
            ClaimedTask(task_id, token, _journal_resume(tx, chain, ordinal, task_id))
        )
    for queued in ready:
        batch_tasks.append(
            ClaimedTask(queued.task_id, task_leases.acquire(tx, queued.task_id, owner))
        )
    if batch_tasks:
        worker_metrics.record_batch_start(
            tx,
            chain,
            ordinal,
            batch=batch,
            size=size,
            task_ids=[claimed.task_id for claimed in batch_tasks],
        )
    return batch_tasks


def _journal_resume(tx: Tx, chain: Chain, ordinal: int, task_id: str) -> str:
    task = tasks.load(tx.connection, task_id)
    message, progress = resume_line(task), task.wip or {}
    tx.journal(
        TaskTakenUp(
            chain_id=chain.chain_id,
            ordinal=ordinal,
            task_id=task_id,
            phase=str(progress.get("phase", "")),
            next_step=str(progress.get("next_step", "")),
            message=message,
        )
    )
    return message


def scope_of(chain: Chain) -> Scope:
    """Return the part of the queue that the chain works on."""
    return Scope(chain.scope_kind, chain.scope_id)


def unfinished_tasks(connection: sqlite3.Connection, chain: Chain, now: str) -> list[str]:
    """Return the tasks in the chain's scope that have steps, are not at their end, and have no worker.

    They are ordered by number. Tasks of another running chain are left to that chain; tasks in progress
    without steps belong to an agent or the user.
    """
    where, values = chains.scope_condition(chain)
    rows = connection.execute(
        "SELECT t.task_id, r.chain_id FROM tasks t JOIN task_runs r USING(task_id)"  # noqa: S608
        f" WHERE t.status IN ('in_progress','review') AND {where}"
        " AND r.run=(SELECT max(run) FROM task_runs WHERE task_id=t.task_id)"
        " AND r.position=(SELECT max(position) FROM task_runs WHERE task_id=r.task_id AND run=r.run)"
        " AND (r.step NOT IN ('done','blocked')"
        "  OR NOT EXISTS (SELECT 1 FROM active_task a WHERE a.task_id=t.task_id))"
        " ORDER BY t.number",
        values,
    ).fetchall()
    leased = {lease.task_id for lease in task_leases.select_active(connection, now)}
    return [
        task_id
        for task_id, chain_id in rows
        if task_id not in leased
        and (chain_id == chain.chain_id or not _is_running(connection, chain_id))
    ]


def has_work(
    connection: sqlite3.Connection, chain: Chain, now: str, skipped: Collection[str] = ()
) -> bool:
    """Whether a worker of the chain could resume or start a task, except those in ``skipped``."""
    if queue_scope.count_ready(connection, scope_of(chain)):
        return True
    return any(task_id not in skipped for task_id in unfinished_tasks(connection, chain, now))


def seconds_until_retry(
    connection: sqlite3.Connection, chain: Chain, now: str, skipped: Collection[str] = ()
) -> float:
    """Return the seconds until the first task may start that waits after a crash; 0 where none waits."""
    unfinished = [
        task_id for task_id in unfinished_tasks(connection, chain, now) if task_id not in skipped
    ]
    return min(retry_delays.select_delays(connection, unfinished, now).values(), default=0.0)


def is_being_done(connection: sqlite3.Connection, chain: Chain, task_id: str, now: str) -> bool:
    """Whether a process does the task at ``now``, or another running chain is about to resume it."""
    if task_leases.find_holder(connection, task_id, now) is not None:
        return True
    steps = task_runs.select_steps(connection, task_id)
    last = steps[-1] if steps else None
    if last is None or not last.open or last.chain_id == chain.chain_id:
        return False
    return _is_running(connection, last.chain_id)


def _is_running(connection: sqlite3.Connection, chain_id: str) -> bool:
    row = connection.execute(
        "SELECT status, owner FROM chains WHERE chain_id=?", (chain_id,)
    ).fetchone()
    return row is not None and row[0] in OPEN and row[1] is not None and is_process_alive(row[1])

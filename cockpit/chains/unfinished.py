"""What is under way in a chain's scope and has nobody who does it: it is taken up before anything new.

A session that rested or died leaves its tasks there; so does a person who unblocks one. Source:
design of work, "Chains"; seed 004, solution 2 ("Resume Flow").
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from cockpit.core.processes import is_process_alive
from cockpit.store.backlog import queue_scope
from cockpit.store.backlog.queue_scope import Scope
from cockpit.store.chains import chains, task_leases, task_runs
from cockpit.store.chains.chains import OPEN, Chain


def scope_of(chain: Chain) -> Scope:
    """The part of the queue that the chain works on."""
    return Scope(chain.scope_kind, chain.scope_id)


def unfinished_tasks(connection: sqlite3.Connection, chain: Chain, now: str) -> list[str]:
    """The tasks in the chain's scope that were begun in steps, are not at their end, and that nobody
    does at ``now``, by their numbers.

    What another chain that still runs began is its own; what an agent or a person does without steps
    is theirs.
    """
    where, values = chains.scope_condition(chain)
    found = connection.execute(
        "SELECT t.task_id, r.chain_id FROM tasks t JOIN task_runs r USING(task_id)"  # noqa: S608
        f" WHERE t.status IN ('in_progress','review') AND {where}"
        " AND r.run=(SELECT max(run) FROM task_runs WHERE task_id=t.task_id)"
        " AND r.position=(SELECT max(position) FROM task_runs WHERE task_id=r.task_id AND run=r.run)"
        " AND (r.step NOT IN ('done','blocked')"
        "  OR NOT EXISTS (SELECT 1 FROM active_task a WHERE a.task_id=t.task_id))"
        " ORDER BY t.number",
        values,
    ).fetchall()
    held = {lease.task_id for lease in task_leases.select_active(connection, now)}
    return [
        task_id
        for task_id, other in found
        if task_id not in held and (other == chain.chain_id or not _runs(connection, other))
    ]


def has_work(
    connection: sqlite3.Connection, chain: Chain, now: str, skipped: Collection[str] = ()
) -> bool:
    """Whether a session of the chain has anything to take up or to begin, ``skipped`` tasks aside."""
    if queue_scope.count_ready(connection, scope_of(chain)):
        return True
    return any(task_id not in skipped for task_id in unfinished_tasks(connection, chain, now))


def is_being_done(connection: sqlite3.Connection, chain: Chain, task_id: str, now: str) -> bool:
    """Whether somebody does the task at ``now``, or another chain is about to go on with it."""
    if task_leases.find_holder(connection, task_id, now) is not None:
        return True
    steps = task_runs.select_steps(connection, task_id)
    last = steps[-1] if steps else None
    if last is None or not last.open or last.chain_id == chain.chain_id:
        return False
    return _runs(connection, last.chain_id)


def _runs(connection: sqlite3.Connection, chain_id: str) -> bool:
    row = connection.execute(
        "SELECT status, owner FROM chains WHERE chain_id=?", (chain_id,)
    ).fetchone()
    return row is not None and row[0] in OPEN and row[1] is not None and is_process_alive(row[1])

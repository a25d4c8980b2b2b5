"""Taking the tasks of a batch: chosen, leased and said in one transaction, so that no two chains
take one task. Source: design of work, "Batches" and "Chains".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cockpit.chains.unfinished import scope_of, unfinished_tasks
from cockpit.learn.resume_text import resume_line
from cockpit.store.backlog import queue_scope, tasks
from cockpit.store.chains import task_leases, worker_metrics
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import worker_name
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action


@dataclass(frozen=True, slots=True)
class ClaimedTask:
    """A task that this session does now. ``resuming`` says where it was left; empty: it is begun."""

    task_id: str
    token: str
    resuming: str = ""


def claim_batch(
    tx: Tx, chain: Chain, ordinal: int, *, batch: int, size: int, skipped: Collection[str]
) -> list[ClaimedTask]:
    """The tasks of the session's ``batch``-th batch (from 1), at most ``size``; none when nothing can
    be begun. What was left over comes first, ``skipped`` of it aside.

    Journals ``task.taken_up`` and ``batch.started``.
    """
    held = {lease.task_id for lease in task_leases.select_active(tx.connection, tx.now())}
    again = [one for one in unfinished_tasks(tx.connection, chain, tx.now()) if one not in skipped][
        :size
    ]
    fresh = queue_scope.next_batch(
        tx.connection, scope_of(chain), size - len(again), held | set(again)
    )
    owner = worker_name(chain.chain_id, ordinal)
    taken = []
    for task_id in again:
        token = task_leases.acquire(tx, task_id, owner)
        taken.append(ClaimedTask(task_id, token, _taken_up(tx, chain, ordinal, task_id)))
    for one in fresh:
        taken.append(ClaimedTask(one.task_id, task_leases.acquire(tx, one.task_id, owner)))
    if taken:
        worker_metrics.record_batch_start(
            tx, chain, ordinal, batch=batch, size=size, task_ids=[one.task_id for one in taken]
        )
    return taken


def _taken_up(tx: Tx, chain: Chain, ordinal: int, task_id: str) -> str:
    task = tasks.load(tx.connection, task_id)
    message, known = resume_line(task), task.wip or {}
    tx.journal(
        Action.TASK_TAKEN_UP,
        detail={
            "chain_id": chain.chain_id,
            "ordinal": ordinal,
            "task_id": task_id,
            "phase": str(known.get("phase", "")),
            "next_step": str(known.get("next_step", "")),
            "message": message,
        },
    )
    return message

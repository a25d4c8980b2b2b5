"""What each worker of a chain completed, batch by batch.

Specified in ``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Literal

import msgspec

from cockpit.store.chains.chains import Chain
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.chains import (
    BatchChanged,
)

BatchOutcome = Literal["completed", "interrupted", "failed"]
"""The worst outcome among the batch's tasks.

A blocked task counts as completed; ``failed`` means that an error outside the task stopped it.
"""


class WorkerMetrics(msgspec.Struct, frozen=True):
    """One row of ``session_metrics``."""

    session_id: str
    """The worker's name, ``ch-3/s2``."""
    chain_id: str
    ordinal: int
    batches_completed: int
    batches_interrupted: int
    batches_failed: int
    last_batch_size: int
    last_batch_outcome: str
    tasks_done: int
    tasks_blocked: int
    review_failures: int
    """Review verdicts that were not PASS."""
    interrupted: int
    """Tasks that were paused before they ended."""
    tokens: int
    """Tokens that its batches used."""
    created_at: str
    updated_at: str


_COLUMNS = (
    "session_id, chain_id, ordinal, batches_completed, batches_interrupted, batches_failed,"
    " last_batch_size, last_batch_outcome, tasks_done, tasks_blocked, review_failures, interrupted,"
    " tokens, created_at, updated_at"
)


def record_batch_start(
    tx: Tx, chain: Chain, ordinal: int, *, batch: int, size: int, task_ids: Sequence[str]
) -> None:
    """Journal that the worker starts its ``batch``-th batch (from 1).

    ``size`` is the number of tasks that the batch may hold.
    """
    tx.journal(
        BatchChanged(
            chain_id=chain.chain_id,
            ordinal=ordinal,
            batch=batch,
            size=size,
            task_ids=tuple(task_ids),
        ),
    )


def record_batch_end(
    tx: Tx,
    chain: Chain,
    ordinal: int,
    *,
    batch: int,
    size: int,
    outcome: BatchOutcome,
    done: Sequence[str] = (),
    blocked: Sequence[str] = (),
    interrupted: Sequence[str] = (),
    review_failures: int = 0,
    tokens: int = 0,
    next_size: int,
) -> None:
    """Add the batch to the worker's totals and journal it with the last reported token use.

    ``tokens`` were used in this batch alone; ``next_size`` is the size of the next one.
    """
    now = tx.now()
    tx.execute(
        f"INSERT INTO session_metrics({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608
        " ON CONFLICT(session_id) DO UPDATE SET"
        " batches_completed=batches_completed+excluded.batches_completed,"
        " batches_interrupted=batches_interrupted+excluded.batches_interrupted,"
        " batches_failed=batches_failed+excluded.batches_failed,"
        " last_batch_size=excluded.last_batch_size,"
        " last_batch_outcome=excluded.last_batch_outcome,"
        " tasks_done=tasks_done+excluded.tasks_done,"
        " tasks_blocked=tasks_blocked+excluded.tasks_blocked,"
        " review_failures=review_failures+excluded.review_failures,"
        " interrupted=interrupted+excluded.interrupted,"
        " tokens=tokens+excluded.tokens, updated_at=excluded.updated_at",
        (
            f"{chain.chain_id}/s{ordinal}",
            chain.chain_id,
            ordinal,
            int(outcome == "completed"),
            int(outcome == "interrupted"),
            int(outcome == "failed"),
            size,
            outcome,
            len(done),
            len(blocked),
            review_failures,
            len(interrupted),
            tokens,
            now,
            now,
        ),
    )
    tx.journal(
        BatchChanged(
            chain_id=chain.chain_id,
            ordinal=ordinal,
            batch=batch,
            size=size,
            outcome=outcome,
            done=tuple(done),
            blocked=tuple(blocked),
            interrupted=tuple(interrupted),
            review_failures=review_failures,
            tokens=tokens,
            next_size=next_size,
        ),
    )


def select_for_chain(connection: sqlite3.Connection, chain_id: str) -> list[WorkerMetrics]:
    """Read the metrics of the chain's workers that ended a batch, in order."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM session_metrics WHERE chain_id=? ORDER BY ordinal",  # noqa: S608
        (chain_id,),
    )
    return [WorkerMetrics(*row) for row in rows]

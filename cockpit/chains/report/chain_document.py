"""A chain as one JSON document: its progress, its cost and its workers.

Specified in ``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from cockpit.chains.decide_next_worker import chain_usage
from cockpit.store.chains import chains, worker_metrics, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker


class WorkerReport(Struct, frozen=True):
    """One worker of a chain, and what its batches came to."""

    worker: Worker
    tasks_done: int = 0
    tasks_blocked: int = 0
    interrupted: int = 0
    """Tasks that it left in progress."""
    review_failures: int = 0


def read_workers(connection: sqlite3.Connection, chain: Chain) -> tuple[WorkerReport, ...]:
    """Read the chain's workers with their measures; one without a batch has none."""
    metrics = {
        row.ordinal: (row.tasks_done, row.tasks_blocked, row.interrupted, row.review_failures)
        for row in worker_metrics.select_for_chain(connection, chain.chain_id)
    }
    return tuple(
        WorkerReport(worker, *metrics.get(worker.ordinal, ()))
        for worker in workers.select_for_chain(connection, chain.chain_id)
    )


_SHOWN = (
    *("chain_id", "status", "reason", "headless", "batch", "approve", "model", "runner"),
    *("max_chains", "max_cost", "max_wall_s", "base_branch", "base_commit", "branch"),
    *("report_path", "created_at", "ended_at"),
)
"""The columns of a chain that are shown as they are."""


def chain_body(chain: Chain) -> dict[str, Any]:
    """Return the chain's own columns."""
    scope = {"kind": chain.scope_kind, "id": chain.scope_id}
    return {**{name: getattr(chain, name) for name in _SHOWN}, "scope": scope}


def chain_document(connection: sqlite3.Connection, chain: Chain) -> dict[str, Any]:
    """Return the chain with its progress, its cost and its workers (``sessions``) with their measures."""
    usage = chain_usage(connection, chain)
    sessions = []
    for each in read_workers(connection, chain):
        measured = {**asdict(each), **asdict(each.worker), "pid": each.worker.pid}
        del measured["worker"]
        sessions.append(measured)
    return {
        **chain_body(chain),
        "watched": chains.is_watched(chain),
        "progress": asdict(chains.count_progress(connection, chain)),
        "tokens": usage.tokens,
        "cost_usd": usage.cost_usd,
        "wall_s": round(usage.wall_s, 3),
        "sessions": sessions,
    }

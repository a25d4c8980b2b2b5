"""A chain as one JSON document: its progress, its cost and its workers.

Specified in ``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from msgspec.structs import asdict

from cockpit.chains.decide_next_worker import chain_usage
from cockpit.store.chains import chains, worker_metrics, workers
from cockpit.store.chains.chains import Chain

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
    metrics = {
        row.ordinal: row for row in worker_metrics.select_for_chain(connection, chain.chain_id)
    }
    sessions = []
    for worker in workers.select_for_chain(connection, chain.chain_id):
        measured = metrics.get(worker.ordinal)
        sessions.append(
            {
                **asdict(worker),
                "pid": worker.pid,
                "tasks_done": measured.tasks_done if measured else 0,
                "tasks_blocked": measured.tasks_blocked if measured else 0,
                "interrupted": measured.interrupted if measured else 0,
                "review_failures": measured.review_failures if measured else 0,
            }
        )
    return {
        **chain_body(chain),
        "watched": chains.is_watched(chain),
        "progress": asdict(chains.count_progress(connection, chain)),
        "tokens": usage.tokens,
        "cost_usd": usage.cost_usd,
        "wall_s": round(usage.wall_s, 3),
        "sessions": sessions,
    }

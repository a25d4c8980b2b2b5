"""Closing chains whose processes have all died: whatever command runs next ends them.

A chain's supervisor and workers can be killed together, with the machine or a terminal. Its tasks' leases
are freed then, and ``cockpit work --continue`` resumes it. Specified in ``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3

from cockpit.chains.supervisor import mark_dead_workers
from cockpit.store.chains import chains, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.db.transaction import Tx

REASON = "all of its processes died"


def find_dead_chains(connection: sqlite3.Connection) -> list[str]:
    """Return the chains that run by their row and that no process supervises or works for."""
    open_chains = connection.execute(
        "SELECT chain_id FROM chains WHERE status IN ('running','draining') ORDER BY number"
    ).fetchall()
    return [chain_id for (chain_id,) in open_chains if _is_dead(connection, chain_id)]


def close_dead_chains(tx: Tx) -> list[Chain]:
    """End these chains, mark their workers as crashed, and free the leases of their tasks."""
    ended = []
    for chain_id in find_dead_chains(tx.connection):
        chain = chains.load(tx.connection, chain_id)
        mark_dead_workers(tx, chain_id)
        status = "stopped" if chain.status == "draining" else "failed"
        ended.append(chains.end(tx, chain_id, status, REASON))
    return ended


def _is_dead(connection: sqlite3.Connection, chain_id: str) -> bool:
    chain = chains.load(connection, chain_id)
    if chain.owner is None or chains.is_watched(chain):
        return False  # without an owner it is being handed over by a process that lives
    return all(
        worker.status != "running" or workers.explain_death(worker)
        for worker in workers.select_for_chain(connection, chain_id)
    )

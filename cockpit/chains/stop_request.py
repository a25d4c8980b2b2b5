"""Asking a chain to come to rest, from the command line and from the screen. Source: design of work,
"Chains".
"""

from __future__ import annotations

from cockpit.chains.supervisor import mark_dead_workers
from cockpit.store.chains import chains, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.db.transaction import Tx


def request_stop(tx: Tx, chain_id: str, *, now: bool) -> Chain:
    """Drain the chain (``now``: stop it at once); one without a living process has ended with that.

    Raises ``IllegalTransition`` for a chain that has ended before, and ``NotFound``.
    """
    asked = chains.drain(tx, chain_id, now=now)
    mark_dead_workers(tx, chain_id)
    known = workers.select_for_chain(tx.connection, chain_id)
    if chains.is_watched(asked) or any(one.status == "running" for one in known):
        return asked
    return chains.end(tx, chain_id, "stopped", "nothing of it ran")

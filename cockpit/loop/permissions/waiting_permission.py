"""A permission while it waits: its newest revision, who waits for it, and how it is withdrawn.

The unmasked input is with the process that waits, so a permission ends with that process. See
``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from cockpit.core.processes import is_process_alive
from cockpit.loop.permissions.withdrawal import WAITER_ENDED, Ending
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import EDITED, Proposal

KIND = "permission"
SHOWN_ANEW = "shown anew"
"""The stored reason of a revision that was replaced because a file changed on disk."""
GONE = WAITER_ENDED.words


def load_newest(connection: sqlite3.Connection, proposal_id: str) -> Proposal:
    """Return the proposal, or the newest revision that replaced it. Raises ``NotFound``."""
    proposal = proposals.load(connection, proposal_id)
    while (proposal.status, proposal.reason) in (("discussed", EDITED), ("expired", SHOWN_ANEW)):
        row = connection.execute(
            "SELECT proposal_id FROM proposals WHERE revises=? ORDER BY rowid DESC LIMIT 1",
            (proposal.proposal_id,),
        ).fetchone()
        if row is None:
            return proposal
        proposal = proposals.load(connection, str(row[0]))
    return proposal


def is_abandoned(proposal: Proposal) -> bool:
    """Whether no process waits for the answer to this pending permission any more."""
    waiter = str(proposal.body.get("waiter", ""))
    is_waited_for = proposal.kind == KIND or bool(waiter)
    if not is_waited_for or proposal.status != "pending":
        return False
    return not is_process_alive(waiter)


def withdraw_now(tx: Tx, proposal_id: str, ending: Ending) -> bool:
    """Close the newest revision of a permission; False if it was decided already. Raises ``NotFound``."""
    proposal = load_newest(tx.connection, proposal_id)
    if proposal.status != "pending":
        return False
    by = ending.decider(str(proposal.body.get("agent", "")))
    proposals.decide(tx, proposal.proposal_id, "expired", by=by, reason=ending.words)
    return True


def has_abandoned(connection: sqlite3.Connection) -> bool:
    """Whether a pending permission's process ended."""
    return any(True for _ in _list_abandoned(connection))


def withdraw_abandoned(tx: Tx) -> list[str]:
    """Withdraw each pending permission whose process ended; returns their ids."""
    abandoned = list(_list_abandoned(tx.connection))
    for proposal_id in abandoned:
        withdraw_now(tx, proposal_id, WAITER_ENDED)
    return abandoned


def _list_abandoned(connection: sqlite3.Connection) -> Iterator[str]:
    rows = connection.execute(
        "SELECT proposal_id, coalesce(json_extract(body_json, '$.waiter'), '') FROM proposals"
        " WHERE status='pending' AND (kind=:kind OR (kind='context'"
        " AND json_extract(body_json, '$.waiter') IS NOT NULL)) ORDER BY created_at LIMIT 1000",
        {"kind": KIND},
    )
    for proposal_id, waiter in rows.fetchall():
        if not is_process_alive(str(waiter)):
            yield str(proposal_id)

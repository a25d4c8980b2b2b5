"""Queue an action that no wave proposed, in the transaction of its approval.

See ``docs/reference/actions.md``, outbox.
"""

from __future__ import annotations

from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import outbox, sessions, waves
from cockpit.store.sessions.proposals import Proposal


def queue_approved(tx: Tx, proposal: Proposal) -> None:
    """Queue what was approved; the proposal's body names its ``type``, ``payload`` and ``key``.

    An action needs a wave: it gets one of its own, in which nothing else happens.
    """
    session = sessions.load(tx.connection, proposal.session_id)
    wave = waves.create(tx, session_id=session.session_id, trace_id=session.trace_id)
    for phase in waves.PHASES[1:]:
        waves.advance(tx, wave.wave_id, phase)
    planned = outbox.plan(
        tx,
        wave_id=wave.wave_id,
        session_id=session.session_id,
        position=0,
        key=str(proposal.body["key"]),
        action_type=str(proposal.body["type"]),
        title=proposal.title,
        payload=proposal.body["payload"],
        max_attempts=1,
    )
    outbox.enqueue(
        tx, planned.action_id, proposal_id=proposal.proposal_id, payload=proposal.body["payload"]
    )

"""Uncertain actions: a crash interrupted them, and it is unknown whether they ran.

cockpit never repeats such an action by itself. The user may have it run again; a policy leaves it, and the
agent is told so. See ``docs/reference/actions.md``, outbox.
"""

from __future__ import annotations

from cockpit.act.dispatch_actions import settle
from cockpit.core.canonical_json import digest
from cockpit.loop.decisions.approval_policy import approving_policy
from cockpit.loop.decisions.await_decision import await_decision
from cockpit.loop.wave_context import WaveContext
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals
from cockpit.store.sessions.outbox import OutboxAction


async def settle_uncertain_action(context: WaveContext, action: OutboxAction) -> None:
    """Ask whether to run the action again: an approval runs it again, any other decision leaves it.

    Raises :class:`~cockpit.loop.decisions.await_decision.DeadlinePassed` when no decision comes in time.
    """
    policy = approving_policy(context.session.policy, "action", action_type=action.action_type)
    if policy:
        await settle(context.store, action.action_id, "drop", by=policy)
        return
    body = {
        "type": "settle",
        "summary": f"Did this happen? {action.title}",
        "fields": [["action", action.action_type], ["what is known", action.last_error]],
        "body": "Check first. Approve to run it again; reject to leave it as it is.",
        "diffs": [],
        "notes": ["It may have run already. Running it again could do it twice."],
        "payload": {"action_id": action.action_id, "attempt": action.attempts},
        "changes": [],
    }
    proposal_id = f"p-{digest([action.key, action.attempts, 'settle'])[:10]}"

    def propose(tx: Tx) -> None:
        proposals.create(
            tx,
            proposal_id=proposal_id,
            kind="action",
            session_id=context.session.session_id,
            wave_id=context.wave.wave_id,
            title=f"run again? {action.title}",
            body=body,
            risk="high",
            task_id=context.session.task_id,
            deadline_s=context.proposal_deadline_s,
        )

    await context.store.write(propose)
    decided = await await_decision(context, proposal_id)
    is_approved = decided.status == "approved"
    by = decided.proposal.decided_by or "person"
    await settle(
        context.store,
        action.action_id,
        "retry" if is_approved else "drop",
        by=by,
        proposal_id=proposal_id,
    )

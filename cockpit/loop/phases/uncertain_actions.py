"""Doubt: an action of which nobody can tell whether it happened.

It is never repeated on its own. A person may have it run again; a policy leaves it and the agent is
told. Source: design of Act ("what cannot be probed becomes uncertain and asks the person").
"""

from __future__ import annotations

from cockpit.act.dispatch_actions import settle
from cockpit.core.canonical_json import digest
from cockpit.loop.decisions.approval_policy import automatic
from cockpit.loop.decisions.await_decision import await_verdict
from cockpit.loop.wave_context import Here
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals
from cockpit.store.sessions.outbox import OutboxAction


async def ask(here: Here, action: OutboxAction) -> None:
    """Settle an uncertain action: approved means "run it again", anything else "leave it"."""
    by = automatic(here.session.policy, "action")
    if by:
        await settle(here.store, action.action_id, "drop", by=by)
        return
    body = {
        "type": "settle",
        "summary": f"Did this happen? {action.title}",
        "fields": [["action", action.action_type], ["what is known", action.last_error]],
        "body": "Look first. Approve to run it again; reject to leave it as it is.",
        "diffs": [],
        "notes": ["It may have had its effect already: running it again could do it twice."],
        "payload": {"action_id": action.action_id, "attempt": action.attempts},
        "changes": [],
    }
    proposal_id = f"p-{digest([action.key, action.attempts, 'settle'])[:10]}"
    deadline = None if here.session.interactive else here.session.limits.get("deadline_s", 3600.0)

    def step(tx: Tx) -> None:
        proposals.create(
            tx,
            proposal_id=proposal_id,
            kind="action",
            session_id=here.session.session_id,
            wave_id=here.wave.wave_id,
            title=f"run again? {action.title}",
            body=body,
            risk="high",
            task_id=here.session.task_id,
            deadline_s=deadline,
        )

    await here.store.write(step)
    verdict = await await_verdict(here, proposal_id)
    again = verdict.status == "approved"
    by = verdict.proposal.decided_by or "person"
    await settle(here.store, action.action_id, "retry" if again else "drop", by=by)

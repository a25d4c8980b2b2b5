"""The demo's policy, which decides proposals where there is no terminal.

It discusses the first context request once, as the guide asks a newcomer to do, and approves the rest. It
decides under its own name, so no journal row claims a decision of the user.
"""

from __future__ import annotations

from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.runtime import Runtime
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.proposals import ProposalCreated
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.follow import follow
from cockpit.store.journal.journal import Row
from cockpit.store.sessions import proposals

NAME = "policy:demo"


async def decide(runtime: Runtime, session_id: str, *, discuss: str = "") -> None:
    """Decide every proposal of the session as it comes, until cancelled.

    With ``discuss`` the first context request is discussed with this message instead of approved. The
    policy keeps no state, so a resumed run continues where it was.
    """
    async for rows in follow(runtime.store, session_id=session_id):
        for row in rows:
            if row.action == Action.PROPOSAL_CREATED:
                await _answer(runtime, row, discuss)


async def _answer(runtime: Runtime, row: Row, discuss: str) -> None:
    proposal_id = row.read(ProposalCreated).proposal_id
    proposal = await runtime.store.read(lambda connection: proposals.load(connection, proposal_id))
    if proposal.status != "pending":
        return
    talk = bool(discuss) and proposal.kind == "context" and proposal.revises is None
    if talk:
        # Before the decision, so that the waiting wave gets the message.
        await runtime.say(proposal.session_id, discuss)

    def step(tx: Tx) -> None:
        decide_proposal(
            tx,
            runtime.engine.settings,
            proposal_id,
            "discussed" if talk else "approved",
            NAME,
            shown_digest=proposal.shown_digest,
            reason=discuss if talk else "",
        )

    await runtime.store.write(step)

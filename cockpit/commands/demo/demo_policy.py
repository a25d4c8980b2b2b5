"""The demo's policy: who decides when nobody sits there.

It does once what a newcomer is asked to do (an Escape and a few words on the first context request)
and approves the rest, under its own name, so that no row claims a person.
"""

from __future__ import annotations

from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.runtime import Runtime
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.follow import follow
from cockpit.store.journal.journal import Row
from cockpit.store.sessions import proposals

NAME = "policy:demo"


async def decide(runtime: Runtime, session_id: str, *, discuss: str = "") -> None:
    """Decide every proposal of the session as it comes, until cancelled.

    With ``discuss`` the first context request is not granted but discussed in these words. Nothing
    is remembered here: a run that is taken up again goes on where it was.
    """
    async for rows in follow(runtime.store, session_id=session_id):
        for row in rows:
            if row.action == Action.PROPOSAL_CREATED:
                await _answer(runtime, row, discuss)


async def _answer(runtime: Runtime, row: Row, discuss: str) -> None:
    proposal_id = str(row.raw_detail()["proposal_id"])
    proposal = await runtime.store.read(lambda connection: proposals.load(connection, proposal_id))
    if proposal.status != "pending":
        return
    talk = bool(discuss) and proposal.kind == "context" and proposal.revises is None
    if talk:
        # Before the decision: the wave that waits for it takes the words in.
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

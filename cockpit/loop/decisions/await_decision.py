"""Waiting for the decision of a proposal.

Whoever decides first counts: the screen, a command in another process, or a policy. The wait follows the
user's own edits of a proposal and ends with :class:`DeadlinePassed` when the proposal expires. See
``docs/reference/loop.md``, decisions.
"""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from cockpit.core.clock import format_time
from cockpit.core.errors import CockpitError
from cockpit.loop.wave_context import WaveContext
from cockpit.store.journal.details.sessions import SessionWaiting
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal

DISCUSS_NOTICE = (
    "The user wants to discuss this before anything happens. Ask what is on their mind; do not try to"
    " reach the same result another way."
)
"""What the agent reads after a discussion began."""


class DeadlinePassed(CockpitError):
    """A proposal's deadline passed without a decision; the session waits until it is resumed."""

    code = "deadline"


class DecidedProposal(Struct, frozen=True):
    """A proposal that is no longer pending: the last revision that the user made of it."""

    proposal: Proposal

    @property
    def status(self) -> str:
        return self.proposal.status

    @property
    def message(self) -> str:
        """The decision, as the agent reads it."""
        reason = self.proposal.reason
        match self.status:
            case "approved":
                return f"Approved by {self.proposal.decided_by}."
            case "discussed":
                # The offline rules read the user's text after this marker.
                return DISCUSS_NOTICE + (f" The user said: {reason}" if reason else "")
            case "rejected":
                return f"Rejected by {self.proposal.decided_by}" + (
                    f": {reason}" if reason else "."
                )
            case _:
                return "The deadline passed without a decision. The proposal expired; it did not happen."


async def await_decision(context: WaveContext, proposal_id: str) -> DecidedProposal:
    """Wait until the proposal, or the user's edit of it, is decided; the session is ``waiting`` then.

    Raises :class:`DeadlinePassed` when it expires during the wait.
    """
    session_id = context.session.session_id
    first = context.store.read_now(
        lambda connection: proposals.load_edited(connection, proposal_id)
    )
    if first.status != "pending":
        return DecidedProposal(first)
    detail = SessionWaiting(for_="proposal", why=first.title)
    await context.store.write(
        lambda tx: sessions.set_status(tx, session_id, "waiting", detail=detail)
    )

    clock = context.store.clock

    def read_decided() -> Proposal | None:
        current = context.store.read_now(
            lambda connection: proposals.load_edited(connection, proposal_id)
        )
        if current.status != "pending":
            return current
        if current.expires_at is not None and current.expires_at <= format_time(clock.now()):
            context.store.write_now(proposals.expire_due)
            current = context.store.read_now(
                lambda connection: proposals.load_edited(connection, proposal_id)
            )
        return None if current.status == "pending" else current

    decided = await context.engine.change_waiter.wait_for(read_decided)
    if decided.status == "expired" and decided.decided_by == "deadline":
        next_step = f"Resume the session with `cockpit run --continue {session_id}`"
        if context.session.role:
            next_step = (
                f"Resume the task with `cockpit tasks move {context.session.task_id} unblocked`"
            )
        raise DeadlinePassed(
            f"The deadline of {decided.title!r} ({decided.proposal_id}) passed without a decision. "
            f"It did not happen. {next_step}."
        )
    await context.store.write(lambda tx: sessions.set_status(tx, session_id, "running"))
    return DecidedProposal(decided)


def find_discussed_predecessor(
    connection: sqlite3.Connection, session_id: str, kind: str, proposal_id: str
) -> Proposal | None:
    """Return the discussed proposal that the new proposal ``proposal_id`` of ``kind`` answers.

    That is the session's last other proposal of that kind, when it ended in discussion; else None.
    """
    last = proposals.find_latest_of_kind(
        connection, session_id, kind, but=proposal_id, not_by="engine"
    )
    return last if last is not None and last.status == "discussed" else None

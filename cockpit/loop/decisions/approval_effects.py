"""Approval effects: what cockpit does in the transaction that approves a proposal.

They are for actions that no wave proposed: a plan for the backlog, which is done then and there, or the
change of an agent's worktree, which is queued in the same transaction. ``RuntimeSettings.approval_effects``
maps the type of an action to its effect.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx
    from cockpit.store.sessions.proposals import Proposal


class NoApprovalEffect(CockpitError):
    """This cockpit has no effect for the action's type; the action was not approved."""

    code = "no_commission"


class RevisedProposal(Struct, frozen=True):
    """The next revision of a proposal, after the user edited it. It is shown and decided again."""

    title: str
    body: Mapping[str, Any]


class ApprovalEffect(Protocol):
    """The effect of one type of action. Every method may raise ``CockpitError``; nothing changed then."""

    def apply(self, tx: Tx, proposal: Proposal, *, by: str) -> None:
        """Do what was approved, in the transaction of the approval."""
        ...

    def turn_down(self, tx: Tx, proposal: Proposal) -> None:
        """Do what follows a rejection, in its transaction."""
        ...

    def describe_discussion(self, proposal: Proposal, words: str) -> str:
        """Return the message that the proposal's session gets for the user's ``words``."""
        ...

    def editable_text(self, proposal: Proposal) -> tuple[str, str]:
        """Return the text that the user may edit, and the suffix of the editor's file."""
        ...

    def revise(
        self, connection: sqlite3.Connection, proposal: Proposal, text: str
    ) -> RevisedProposal:
        """Return the revision that the user's ``text`` makes of ``proposal``."""
        ...


ApprovalEffects = Mapping[str, ApprovalEffect]


def find_approval_effect(effects: ApprovalEffects, proposal: Proposal) -> ApprovalEffect | None:
    """Return the effect of an action that no wave proposed; None for any other proposal.

    Raises :class:`NoApprovalEffect` for a type that is not in ``effects``.
    """
    if proposal.kind != "action" or proposal.wave_id:
        return None
    action_type = str(proposal.body.get("type", ""))
    if action_type not in effects and proposal.session_id:
        return None
    if action_type not in effects:
        raise NoApprovalEffect(
            f"This cockpit cannot apply {proposal.proposal_id}, which is of type {action_type!r}. Reject"
            " it, or decide it with the cockpit that proposed it."
        )
    return effects[action_type]

"""The approval effect of a proposed plan: its tasks enter the backlog when it is approved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cockpit.backlog.planning.plan import PLAN_ACTION

if TYPE_CHECKING:
    import sqlite3

    from cockpit.loop.decisions.approval_effects import ApprovalEffect, RevisedProposal
    from cockpit.store.db.transaction import Tx
    from cockpit.store.sessions.proposals import Proposal


class _PlanEffect:
    """Plans for the backlog (:mod:`cockpit.backlog.planning.propose_plan`)."""

    def apply(self, tx: Tx, proposal: Proposal, *, by: str) -> None:
        from cockpit.backlog.planning import propose_plan

        propose_plan.carry_out(tx, proposal, by=by)

    def turn_down(self, tx: Tx, proposal: Proposal) -> None:
        return  # a plan that is not wanted leaves nothing behind

    def describe_discussion(self, proposal: Proposal, words: str) -> str:
        return words

    def editable_text(self, proposal: Proposal) -> tuple[str, str]:
        from cockpit.backlog.planning import propose_plan

        return propose_plan.editable(proposal)

    def revise(
        self, connection: sqlite3.Connection, proposal: Proposal, text: str
    ) -> RevisedProposal:
        from cockpit.backlog.planning import propose_plan

        return propose_plan.edited(connection, text)


APPROVAL_EFFECTS: Mapping[str, ApprovalEffect] = {PLAN_ACTION: _PlanEffect()}
"""The approval effects that the settings give to the runtime, by the type of the action."""

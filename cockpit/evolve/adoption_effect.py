"""The approval effect of a tool's adoption, as the settings give it to the runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

    from cockpit.loop.decisions.approval_effects import ApprovalEffect, RevisedProposal
    from cockpit.store.db.transaction import Tx
    from cockpit.store.sessions.proposals import Proposal


class _AdoptionEffect:
    """Adopting a tool (:mod:`cockpit.evolve.propose_grown_tool`)."""

    def apply(self, tx: Tx, proposal: Proposal, *, by: str) -> None:
        from cockpit.loop.decisions.queue_approved import queue_approved

        queue_approved(tx, proposal)

    def turn_down(self, tx: Tx, proposal: Proposal) -> None:
        return  # nothing was written, so nothing is to be undone

    def describe_discussion(self, proposal: Proposal, words: str) -> str:
        return words

    def editable_text(self, proposal: Proposal) -> tuple[str, str]:
        from cockpit.loop.decisions.edit_action import NotEditable

        raise NotEditable(
            "A tool is adopted as its tests ran. Discuss it: your words begin a new test and new code."
        )

    def revise(
        self, connection: sqlite3.Connection, proposal: Proposal, text: str
    ) -> RevisedProposal:
        self.editable_text(proposal)
        raise AssertionError("unreachable")


ADOPTION_EFFECTS: Mapping[str, ApprovalEffect] = {"adopt_tool": _AdoptionEffect()}
"""The approval effects by the type of the action."""

"""The approval effects of a worktree's change, as the settings give them to the runtime.

See ``docs/reference/agents.md``, the change of a worktree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

    from cockpit.loop.decisions.approval_effects import ApprovalEffect, RevisedProposal
    from cockpit.store.db.transaction import Tx
    from cockpit.store.sessions.proposals import Proposal


class _ChangeEffect:
    """Taking and dropping a worktree (:mod:`cockpit.tasks.agent_changes.carry_out`)."""

    def apply(self, tx: Tx, proposal: Proposal, *, by: str) -> None:
        from cockpit.loop.decisions.queue_approved import queue_approved

        queue_approved(tx, proposal)

    def turn_down(self, tx: Tx, proposal: Proposal) -> None:
        from cockpit.tasks.agent_changes import carry_out

        carry_out.turn_down(tx, proposal)

    def describe_discussion(self, proposal: Proposal, words: str) -> str:
        from cockpit.tasks.agent_changes import carry_out

        return carry_out.describe_discussion(proposal, words)

    def editable_text(self, proposal: Proposal) -> tuple[str, str]:
        from cockpit.loop.decisions.edit_action import NotEditable

        raise NotEditable(
            "A worktree's change is not edited here. Discuss it: your words are the agent's next prompt."
        )

    def revise(
        self, connection: sqlite3.Connection, proposal: Proposal, text: str
    ) -> RevisedProposal:
        self.editable_text(proposal)
        raise AssertionError("unreachable")


CHANGE_EFFECTS: Mapping[str, ApprovalEffect] = {
    "take_worktree": _ChangeEffect(),
    "drop_worktree": _ChangeEffect(),
}
"""The approval effects by the type of the action."""

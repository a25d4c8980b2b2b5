"""The approval effects of actions that no wave carries out, as the settings give them to the runtime.

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


class QueuedEffect:
    """The action is queued with its approval; ``uneditable`` says why it is not edited."""

    def __init__(self, uneditable: str) -> None:
        self._uneditable = uneditable

    def apply(self, tx: Tx, proposal: Proposal, *, by: str) -> None:
        """Queue the action."""
        from cockpit.loop.decisions.queue_approved import queue_approved

        queue_approved(tx, proposal)

    def turn_down(self, tx: Tx, proposal: Proposal) -> None:
        """Do nothing: nothing was written, so nothing is to be undone."""

    def describe_discussion(self, proposal: Proposal, words: str) -> str:
        """Return the user's words."""
        return words

    def editable_text(self, proposal: Proposal) -> tuple[str, str]:
        """Raise ``NotEditable``."""
        from cockpit.loop.decisions.edit_action import NotEditable

        raise NotEditable(self._uneditable)

    def revise(
        self, connection: sqlite3.Connection, proposal: Proposal, text: str
    ) -> RevisedProposal:
        """Raise ``NotEditable``."""
        self.editable_text(proposal)
        raise AssertionError("unreachable")


class _ChangeEffect(QueuedEffect):
    """Taking and dropping a worktree (:mod:`cockpit.tasks.agent_changes.carry_out`)."""

    def turn_down(self, tx: Tx, proposal: Proposal) -> None:
        from cockpit.tasks.agent_changes import carry_out

        carry_out.turn_down(tx, proposal)

    def describe_discussion(self, proposal: Proposal, words: str) -> str:
        from cockpit.tasks.agent_changes import carry_out

        return carry_out.describe_discussion(proposal, words)


CHANGE_EFFECTS: Mapping[str, ApprovalEffect] = dict.fromkeys(
    ("take_worktree", "drop_worktree"),
    _ChangeEffect(
        "A worktree's change is not edited here. Discuss it: your words are the agent's next prompt."
    ),
)
"""The approval effects by the type of the action."""

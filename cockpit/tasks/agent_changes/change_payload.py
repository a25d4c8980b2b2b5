"""The two actions over a worktree's change, and what of git they were shown with.

See ``docs/reference/agents.md``, the change of a worktree.
"""

from __future__ import annotations

import msgspec

TAKE = "take_worktree"
"""The type of the action that merges a worktree's change."""
DROP = "drop_worktree"
"""The type of the action that removes a worktree and its branch."""
TYPES = (TAKE, DROP)
DROPPED = "refs/cockpit/dropped/"
"""Where the work of a dropped worktree is kept, under its session's id."""


class ChangePayload(msgspec.Struct, frozen=True):
    """One worktree's change as it was shown; the adapters get exactly this."""

    session: str
    worktree: str
    """Its name in the store."""
    agent: str
    """The agent's title, as the author of what it left uncommitted."""
    branch: str
    into: str
    """The branch that it is merged into, as a full reference."""
    base: str
    """The commit of ``into`` when it was shown."""
    tip: str
    """The commit of the worktree's branch when it was shown."""
    tree: str
    """The tree of the worktree with what is not committed, when it was shown."""

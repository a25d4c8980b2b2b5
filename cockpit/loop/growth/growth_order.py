"""What a task orders of a growth, and what it gets.

The growth itself is above the loop: ``RuntimeSettings.grow_tool`` gets the order and the wave that waits.
"""

from __future__ import annotations

from msgspec import Struct

from cockpit.act.proposed_action import ActionPreview


class GrowthOrder(Struct, frozen=True):
    """A tool that the user has agreed to let grow."""

    growth_id: str
    """The key of the call that asked for it."""
    name: str
    """The only name that the tool may have."""
    want: str
    """What it has to do, in words, with an example."""
    only_reads: bool
    """Whether the task that needs it only reads."""


class GrowthEnd(Struct, frozen=True):
    """How a growth ended."""

    preview: ActionPreview | None
    """What its adoption would do; None where nothing grew."""
    outcome: str
    """``green``, ``given_up``, ``stagnated``, ``rounds`` or ``failed``."""
    reason: str
    """Why nothing grew, in words; empty with a preview."""
    rounds: int

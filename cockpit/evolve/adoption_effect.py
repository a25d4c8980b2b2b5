"""The approval effect of a tool's adoption, as the settings give it to the runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cockpit.tasks.agent_changes.change_effects import QueuedEffect

if TYPE_CHECKING:
    from cockpit.loop.decisions.approval_effects import ApprovalEffect

ADOPTION_EFFECTS: Mapping[str, ApprovalEffect] = {
    "adopt_tool": QueuedEffect(
        "A tool is adopted as its tests ran. Discuss it: your words begin a new test and new code."
    )
}
"""The approval effects by the type of the action."""

"""What stands over the cockpit's screen: its groups of actions, and other screens drawn with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.app.application import CockpitApp
    from cockpit.app.screens.cockpit_screen import CockpitScreen


class OverScreen:
    """Actions over one screen."""

    def __init__(self, screen: CockpitScreen) -> None:
        self._screen = screen

    @property
    def _cockpit(self) -> CockpitApp:
        return self._screen.cockpit


class Live:
    """A screen above the cockpit's own that is drawn whenever that one is."""

    def paint(self) -> None:
        """Draw what the journal says now."""
        raise NotImplementedError


class OverTasks(Live):
    """A screen on which a task stands under the cursor."""

    @property
    def task_id(self) -> str:
        """The task that keys are about; empty without one."""
        raise NotImplementedError

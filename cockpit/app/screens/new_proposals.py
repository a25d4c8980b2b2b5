"""Ring for a new proposal, and turn to it where that takes nothing from the user."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from cockpit.app.all_projects.open_from_project import notify_pending
from cockpit.app.screens.panes import PHONE

if TYPE_CHECKING:
    from cockpit.app.screens.cockpit_screen import CockpitScreen


class NewProposals:
    """Knows which proposals were announced, and whether the tab was turned for one."""

    def __init__(self, screen: CockpitScreen) -> None:
        self._screen = screen
        self._announced: set[str] = set()
        self._has_turned = self._stays_in_queue = False

    def announce(self, pending: Sequence[str], *, rings: bool) -> None:
        """Ring for new proposals without taking the focus; turn the tab while no pane is in use.

        ``pending`` are the proposals that wait, by id. ``rings``: not for those that waited before the start.
        """
        screen = self._screen
        new = set(pending) - self._announced
        self._announced = set(pending)
        waiting = f" · {len(pending)} waiting" if pending else ""
        front, note = screen.queue.front, ""
        if new and rings:
            screen.app.bell()
            title = next((row.title for row in screen.queue.waiting if row.proposal_id in new), "")
            if front is not None and front.proposal_id in new:
                title = front.title
            note = f"{title or 'a proposal'} waits for you"
            notify_pending(screen.host, new)
        screen.host.announce(f"cockpit · {screen.host.engine.place.home.name}{waiting}", note)
        self._turn_tab(new)

    def note_tab_chosen(self) -> None:
        """Note that the user turned the tab: the queue stays no longer by itself."""
        self._stays_in_queue = False

    def _turn_tab(self, new: Collection[str]) -> None:
        """Turn to the proposals that wait where one pane has room, and back, while no pane is in use."""
        screen, panes = self._screen, self._screen.panes
        front, waits_elsewhere = screen.queue.front, bool(screen.queue.others)
        is_idle = panes.narrow and screen.pane in ("prompt", "")
        turns = front is not None and front.proposal_id != screen.front_id
        if new and front is None and waits_elsewhere:
            # On a phone the queue comes before a conversation that has not begun.
            has_begun = bool(screen.host.session_id or screen.prompt.text)
            turns = screen.app.size.width < PHONE and not has_begun
            self._stays_in_queue |= turns
        if turns:
            if is_idle and panes.tab == "conversation":
                panes.turn_to("proposals")
                self._has_turned = True
        elif front is None and self._has_turned:
            if waits_elsewhere and self._stays_in_queue:
                return
            self._has_turned = False
            if is_idle and panes.tab == "proposals":
                panes.turn_to("conversation")

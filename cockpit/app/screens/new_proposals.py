"""Ring for a new proposal, and turn to it where that takes nothing from the user."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cockpit.app.all_projects.open_from_project import notify_pending
from cockpit.app.host import Host
from cockpit.app.screens.panes import PHONE


class NewProposals:
    """Knows which proposals were announced, and whether the tab stays with those of other sessions."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._announced: set[str] = set()
        self._stays_in_queue = False

    def announce(self, pending: Sequence[str], *, rings: bool) -> None:
        """Ring for new proposals without taking the focus; turn the tab while no pane is in use.

        ``pending`` are the proposals that wait, by id. ``rings``: not for those that waited before the start.
        """
        host, screen = self._host, self._host.main
        new = set(pending) - self._announced
        self._announced = set(pending)
        waiting = f" · {len(pending)} waiting" if pending else ""
        front, note = screen.queue.front, ""
        if new and rings:
            title = next((row.title for row in screen.queue.waiting if row.proposal_id in new), "")
            if front is not None and front.proposal_id in new:
                title = front.title
            note = f"{title or 'a proposal'} waits for you"
            notify_pending(host, new)
        host.announce(f"cockpit · {host.engine.place.home.name}{waiting}", note)
        self._turn_tab(new)

    def note_tab_chosen(self) -> None:
        """Note that the user turned the tab: the queue stays no longer by itself."""
        self._stays_in_queue = False

    def _turn_tab(self, new: Collection[str]) -> None:
        """Turn to the proposals that wait where one pane has room, and back, while no pane is in use."""
        screen, panes = self._host.main, self._host.main.panes
        front, waits_elsewhere = screen.queue.front, bool(screen.queue.others)
        is_idle = panes.narrow and screen.pane in ("prompt", "")
        turns = front is not None and front.proposal_id != screen.front_id
        if new and front is None and waits_elsewhere:
            # On a phone the queue comes before a conversation that has not begun.
            has_begun = bool(self._host.session_id or screen.prompt.text)
            turns = panes.app.size.width < PHONE and not has_begun
            self._stays_in_queue |= turns
        if not is_idle:
            return
        if turns and panes.tab == "conversation":
            panes.turn_to("proposals")
        elif front is None and not (waits_elsewhere and self._stays_in_queue):
            panes.turn_back()

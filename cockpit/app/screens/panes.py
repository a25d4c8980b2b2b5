"""The four panes and the prompt: their layout, and which of them are visible.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from cockpit.app.actions.context import Pane
from cockpit.app.state.screen_state import Views
from widgets.bands.band_meter import BandMeter
from widgets.conversation.conversation import Conversation
from widgets.proposals.proposal_panel import ProposalPanel
from widgets.views import KeyHintView
from widgets.work.work_pane import WorkPane

PHONE = 60
"""Below this many columns the screen opens with the queue, where one of other sessions waits."""
NARROW = 100
"""Below this many columns the panes become tabs."""
WIDE = 200
"""From this many columns on there are three columns."""
OVER = 120
"""Below this many columns a proposal that waits stands over the other panes."""

PANES: tuple[Pane, ...] = ("conversation", "bands", "proposals", "work")
TITLES: dict[Pane, str] = {
    "conversation": "Conversation",
    "bands": "Bands",
    "proposals": "Proposals",
    "work": "Work",
}


class Tab(Static):
    """One tab of a narrow screen."""

    class Chosen(Message):
        """The user clicked a tab."""

        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, pane: Pane) -> None:
        super().__init__(Content(TITLES[pane]), id=f"tab-{pane}")
        self.pane: Pane = pane

    def on_click(self) -> None:
        """Choose this tab."""
        self.post_message(self.Chosen(self.pane))


class Panes(Container):
    """Four panes in two or three columns; one at a time when the screen is narrow or a pane is alone.

    ``foot`` (the prompt) is below the conversation and stays when another pane is alone.
    """

    class TitleClicked(Message):
        """The user clicked the upper border of a pane."""

        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, *foot: Widget) -> None:
        super().__init__(id="panes")
        self._foot = foot
        self.conversation = Conversation(id="conversation")
        self.meter = BandMeter(id="bands")
        self.proposals = ProposalPanel(id="proposals")
        self.work = WorkPane(id="work")
        self.tab: Pane = "conversation"
        self.turned_from: Pane | None = None
        """The tab that was in view before the program turned to another; None once the user chose one."""
        self.alone: Pane | None = None
        self.narrow = False
        self._wide = False
        self.over = False
        """Whether a proposal stands over the other panes, which come back after it."""
        self._tall = False
        self._revision = 0
        self._session_id: str | None = None
        self._proposal_count = 0

    def compose(self) -> ComposeResult:
        with Horizontal(id="tabs"):
            for pane in PANES:
                yield Tab(pane)
        with Container(id="grid"):
            yield self.conversation
            with Vertical(id="right"):
                yield self.meter
                yield self.proposals
                yield self.work
            yield from self._foot

    def on_mount(self) -> None:
        self._arrange()

    def on_click(self, event: events.Click) -> None:
        """Show a pane alone after a click on its title, and all panes again after another."""
        for name in PANES:
            pane = self.pane(name)
            if event.widget is pane and event.screen_y == pane.region.y and not self.narrow:
                event.stop()
                self.post_message(self.TitleClicked(name))

    @property
    def solo(self) -> Pane | None:
        """The only visible pane; None when all are visible."""
        if self.narrow:
            return self.tab
        return self.alone or ("proposals" if self.over else None)

    def pane(self, name: Pane) -> Widget:
        """Return the widget of a pane."""
        panes: dict[Pane, Widget] = {
            "conversation": self.conversation,
            "bands": self.meter,
            "proposals": self.proposals,
            "work": self.work,
        }
        return panes[name]

    def is_visible(self, name: Pane) -> bool:
        """Return True when the pane has room on the screen."""
        widget = self.pane(name)
        return self.solo in (None, name) and widget.content_size.height > 0

    def set_width(self, columns: int) -> None:
        """Switch between tabs, two columns and three."""
        narrow, wide = columns < NARROW, columns >= WIDE
        if (narrow, wide) != (self.narrow, self._wide):
            if narrow and not self.narrow and self.alone is not None:
                self.tab = self.alone
            self.narrow, self._wide = narrow, wide
            self._arrange()

    def set_room(self, *, over: bool, tall: bool) -> None:
        """Give the proposals the place of all panes, or the whole height next to the conversation."""
        if (over, tall) != (self.over, self._tall):
            self.over, self._tall = over, tall
            self._arrange()

    @property
    def has_room(self) -> bool:
        """Whether the proposals are laid out in the room that they were given."""
        if not self._tall or self.solo is not None:
            return True
        column = self.query_one("#right").content_size.height
        return self.proposals.outer_size.height == column

    @property
    def is_zoomed(self) -> bool:
        """True while the user has a pane fill the screen."""
        return not self.narrow and self.alone is not None

    def end_zoom(self) -> None:
        """Show all panes again."""
        self.alone = None
        self._arrange()

    def show_only(self, name: Pane) -> None:
        """Choose a tab; on a wide screen show the pane alone, or all panes again."""
        if self.narrow:
            # Never toggled: a new proposal may have turned the tab a moment ago.
            self.tab, self.turned_from = name, None
        else:
            self.alone = None if self.alone == name else name
        self._arrange()

    def turn_to(self, name: Pane) -> None:
        """Make the pane visible."""
        if self.narrow and self.tab != name:
            self.tab, self.turned_from = name, self.turned_from or self.tab
        elif self.alone not in (None, name):
            self.alone = None
        self._arrange()

    def turn_back(self) -> None:
        """Show the tab from which the program has turned to the proposals."""
        if self.narrow and self.tab == "proposals" and self.turned_from is not None:
            self.tab, self.turned_from = self.turned_from, None
            self._arrange()

    def _arrange(self) -> None:
        solo = self.solo
        is_tall = self._tall and solo is None
        # At once: each change of a class here restyles all that is on the screen.
        is_wide = self._wide and solo is None
        classes = {"-narrow": self.narrow, "-solo": solo is not None, "-tall": is_tall}
        self.update_classes({**classes, "-wide": is_wide})
        for name in PANES:
            is_crowded_out = is_tall and name in ("bands", "work")
            self.pane(name).display = solo in (None, name) and not is_crowded_out
        self.query_one("#right").display = solo != "conversation"
        for tab in self.query(Tab):
            tab.set_class(tab.pane == self.tab, "-chosen")

    def paint(self, views: Views, session_id: str, hints: Sequence[KeyHintView]) -> None:
        """Draw the views; ``views.turns`` are those changed after :meth:`drawn_revision`."""
        if session_id != self._session_id:
            self.conversation.show(views.turns)
            self._session_id = session_id
        else:
            for turn in views.turns:
                self.conversation.upsert(turn)
        self.conversation.welcome.show(views.welcome)
        self._revision = views.revision
        self.meter.show(views.meter)
        self.proposals.show(views.queue, hints)
        self.work.show(views.board)
        self.proposals.set_class(views.queue.front is not None, "-pending")
        self.proposals.set_class(views.queue.front is None and views.queue.total > 0, "-elsewhere")
        self.query_one("#grid").set_class(views.queue.front is not None, "-pending")
        if views.queue.total != self._proposal_count:
            self._proposal_count = views.queue.total
            mark = (
                f"{TITLES['proposals']} ● {self._proposal_count}" if self._proposal_count else None
            )
            tab = self.query_one("#tab-proposals", Tab)
            tab.update(Content(mark or TITLES["proposals"]))
            tab.set_class(bool(self._proposal_count), "-waiting")

    def drawn_revision(self, session_id: str) -> int:
        """Return the revision up to which the conversation of a session is drawn."""
        return self._revision if session_id == self._session_id else 0

    def forget(self) -> None:
        """Draw the whole conversation with the next paint."""
        self._session_id = None

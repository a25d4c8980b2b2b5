"""A glance at a session that is not followed: its last lines, drawn on as they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content

from cockpit.app.dialogs.question import Dialog
from cockpit.app.overlay import Live
from widgets.conversation.conversation import Conversation
from widgets.text.clean import clean
from widgets.views import TurnView

Look = Callable[[], tuple[str, Sequence[TurnView]]]
"""A title, and the turns that are to be seen now."""


class Peek(Live, Dialog[None]):
    """The last turns of a session; a glance changes nothing of what is followed."""

    BINDINGS = [Binding("space,enter,q", "leave", "close", show=False)]  # noqa: RUF012

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self._seen: dict[str, TurnView] = {}

    def compose(self) -> ComposeResult:
        with Vertical(id="peek", classes="box") as box:
            box.border_subtitle = Content("space or esc: back")
            yield Conversation()

    def on_mount(self) -> None:
        conversation = self.query_one(Conversation)
        conversation.border_title = None
        conversation.focus()
        self.paint()

    def paint(self) -> None:
        """Draw what came since."""
        if not self.is_attached or not self.query(Conversation):
            return
        title, turns = self._look()
        self.query_one("#peek").border_title = Content(clean(title, newlines=False))
        conversation = self.query_one(Conversation)
        if not self._seen:
            conversation.show(turns)
        for turn in turns:
            if self._seen.get(turn.key) != turn:
                conversation.upsert(turn)
        self._seen.update((turn.key, turn) for turn in turns)

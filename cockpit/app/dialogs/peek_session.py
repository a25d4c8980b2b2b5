"""Peek at a session that is not followed: its last turns, updated while they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content

from cockpit.app.dialogs.small_dialogs import Dialog
from cockpit.app.host import LiveScreen
from widgets.conversation.conversation import Conversation
from widgets.text.clean import clean
from widgets.views import TurnView

ReadTurns = Callable[[], tuple[str, Sequence[TurnView]]]
"""Returns a title and the current turns."""


class PeekDialog(LiveScreen, Dialog[None]):
    """The last turns of a session; the followed session stays the same."""

    BINDINGS = [Binding("space,enter,q", "leave", "close", show=False)]  # noqa: RUF012

    def __init__(self, read_turns: ReadTurns) -> None:
        super().__init__()
        self._read_turns = read_turns
        self._drawn: dict[str, TurnView] = {}

    def compose(self) -> ComposeResult:
        with Vertical(id="peek", classes="box") as box:
            box.border_subtitle = Content("space or esc back")
            yield Conversation()

    def on_mount(self) -> None:
        conversation = self.query_one(Conversation)
        conversation.border_title = None
        conversation.focus()
        self.paint()

    def paint(self) -> None:
        """Draw new and changed turns."""
        if not self.is_attached or not self.query(Conversation):
            return
        title, turns = self._read_turns()
        self.query_one("#peek").border_title = Content(clean(title, newlines=False))
        conversation = self.query_one(Conversation)
        if not self._drawn:
            conversation.show(turns)
        for turn in turns:
            if self._drawn.get(turn.key) != turn:
                conversation.upsert(turn)
        self._drawn.update((turn.key, turn) for turn in turns)

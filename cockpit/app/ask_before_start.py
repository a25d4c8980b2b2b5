"""A question on the whole terminal before the cockpit opens: may it load this, may it move that?

It needs neither store nor settings, because the answer decides which of them are used.
"""

from __future__ import annotations

import time

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from cockpit.app.terminal.terminal_app import TerminalApp, ask_at_terminal
from widgets.text.clean import clean

_ARMED_AFTER_S = 0.5
"""No key answers sooner: what was typed before the question appeared is not an answer."""


class QuestionApp(TerminalApp[bool]):
    """Ask one question about a text that can be scrolled; ``y`` agrees, ``n`` and Escape do not."""

    CSS = """
    #title { height: auto; padding: 1 2; text-style: bold; }
    #text { height: 1fr; padding: 0 2; }
    #keys { height: 1; padding: 0 2; }
    """

    def __init__(
        self,
        title: str,
        text: str,
        *,
        agree: str,
        refuse: str,
        armed_after_s: float = _ARMED_AFTER_S,
    ) -> None:
        super().__init__()
        self._armed_after_s = armed_after_s
        self._title, self._text = title, text
        self._answers = f"y {agree} · n {refuse} · ↑ ↓ pgup pgdn scroll"
        self._asked_at = float("inf")

    def compose(self) -> ComposeResult:
        yield Static(Content(clean(self._title)), id="title")
        with VerticalScroll(id="text"):
            yield Static(Content(clean(self._text)))
        yield Static(Content(self._answers), id="keys")

    def on_mount(self) -> None:
        self.query_one("#text").focus()
        self.call_after_refresh(self._note_asked)

    def on_key(self, event: events.Key) -> None:
        """Answer, or scroll."""
        scroll = self.query_one("#text", VerticalScroll)
        moves = {
            "up": scroll.scroll_up,
            "down": scroll.scroll_down,
            "pageup": scroll.scroll_page_up,
            "pagedown": scroll.scroll_page_down,
            "home": scroll.scroll_home,
            "end": scroll.scroll_end,
        }
        # When the key went down counts: on a far terminal it comes later.
        is_answer = event.time - self._asked_at >= self._armed_after_s
        if move := moves.get(event.key):
            event.stop()
            move(animate=False)
        elif is_answer and event.key == "y":
            self.exit(True)
        elif is_answer and event.key in ("n", "escape", "ctrl+c", "ctrl+q"):
            self.exit(False)

    def _note_asked(self) -> None:
        self._asked_at = time.monotonic()


def ask_on_screen(title: str, text: str, *, agree: str, refuse: str) -> bool:
    """Ask the user on the whole terminal; return whether they agree.

    Raises KeyboardInterrupt when the terminal goes away.
    """
    return bool(ask_at_terminal(QuestionApp(title, text, agree=agree, refuse=refuse)))

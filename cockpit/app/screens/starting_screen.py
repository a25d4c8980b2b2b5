"""The first frame: the header of the project and what is typed, while the rest of the program is loaded.

Specified in ``docs/reference/screen.md``, start.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from widgets.frame.header import HeaderBar
from widgets.text.clean import clean
from widgets.views import HeaderView


class StartingScreen(Screen[None]):
    """Draw the header and the letters so far; the application keeps the keys for the main screen."""

    DEFAULT_CSS = """
    StartingScreen > Static { dock: bottom; height: auto; margin: 0 2 2 2; }
    """

    def __init__(self, project: str) -> None:
        super().__init__()
        self._project = project

    def compose(self) -> ComposeResult:
        header = HeaderBar()
        header.show(HeaderView(project=self._project))
        yield header
        yield Static()

    def show_typed(self, typed: Iterable[events.Key | events.Paste]) -> None:
        """Show what was typed so far, as the prompt will have it; Enter and other keys do nothing yet."""
        text = ""
        for event in typed:
            if isinstance(event, events.Paste):
                text += event.text
            elif event.key == "backspace":
                text = text[:-1]
            elif event.is_printable:
                text += event.character or ""
        self.query_one(Static).update(Content(clean(text)))

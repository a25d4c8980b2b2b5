"""The first frame: the header of the project, while the rest of the program is loaded.

Specified in ``docs/reference/screen.md``, start.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.screen import Screen

from widgets.frame.header import HeaderBar
from widgets.views import HeaderView


class StartingScreen(Screen[None]):
    """Draw the header. The keys that come before the main screen are kept by the application."""

    def __init__(self, project: str) -> None:
        super().__init__()
        self._project = project

    def compose(self) -> ComposeResult:
        header = HeaderBar()
        header.show(HeaderView(project=self._project))
        yield header

"""The first frame: the panes of the main screen, empty, while the rest of the program is loaded.

Specified in ``docs/reference/screen.md``, start.
"""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.screen import Screen

from widgets.frame.empty_panes import EmptyPanes
from widgets.frame.header import HeaderBar
from widgets.views import HeaderView

NARROW = 100
"""Below this many columns the panes become tabs."""
WIDE = 200
"""From this many columns on there are three columns."""


class StartingScreen(Screen[None]):
    """Draw the header, the frames of the panes and the prompt: a fraction of the modules and widgets.

    The main screen takes its place with the same lines at the same places. The keys that come before that
    are kept by the application.
    """

    DEFAULT_CSS = """
    StartingScreen { layout: vertical; background: $background; color: $foreground; }
    StartingScreen HeaderBar { background: $panel; color: $foreground; }
    """

    def __init__(self, project: str) -> None:
        super().__init__()
        self._project = project
        self._panes = EmptyPanes()

    def compose(self) -> ComposeResult:
        header = HeaderBar()
        header.show(HeaderView(project=self._project))
        yield header
        yield self._panes

    def on_mount(self) -> None:
        self._set_width(self.app.size.width)

    def on_resize(self, event: events.Resize) -> None:
        """Switch between tabs, two columns and three."""
        self._set_width(event.size.width)

    def _set_width(self, columns: int) -> None:
        self._panes.narrow, self._panes.wide = columns < NARROW, columns >= WIDE

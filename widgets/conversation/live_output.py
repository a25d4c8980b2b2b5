"""The end of what a command writes while it runs, at the bottom of the conversation."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from widgets.text.style_names import DIM, WARN, line

MOST_LINES = 6
"""Lines of the output in view; the opened block has more."""


class LiveOutput(Widget):
    """One line about the command, and the last lines of its output; hidden while nothing runs."""

    DEFAULT_CSS = """
    LiveOutput { height: auto; width: 1fr; display: none; text-wrap: nowrap; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._title = ""
        self._lines: tuple[str, ...] = ()

    def show(self, title: str, lines: Sequence[str]) -> None:
        """Draw the end of ``lines``; an empty title hides it."""
        shown = tuple(lines[-MOST_LINES:])
        if (title, shown) == (self._title, self._lines):
            return
        has_height = len(shown) == len(self._lines) and bool(title) == bool(self._title)
        self._title, self._lines = title, shown
        self.display = bool(title)
        self.refresh(layout=not has_height)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 + len(self._lines)

    def render(self) -> Content:
        width = self.content_size.width
        rows = [line(("▶ ", WARN), self._title), *(line(("│ ", DIM), each) for each in self._lines)]
        return Content("\n").join(row.truncate(width, ellipsis=True) for row in rows)

"""The older turns of a conversation: thousands of them, drawn line by line on demand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget

from widgets.conversation.static_turns import draw, stands_close
from widgets.text.style_names import CURSOR
from widgets.views import TurnView

WINDOW = 100
"""How many turns are laid out at first, and how many more each time the reader comes to the top."""


class Scrollback(Widget):
    """Old turns as one widget as tall as all of its lines; only visible lines are rendered.

    Only a window of the newest turns is laid out: :meth:`older` widens it. The scrolling container
    around it does the scrolling.
    """

    DEFAULT_CSS = """
    Scrollback { height: auto; width: 1fr; text-wrap: nowrap; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._turns: list[TurnView] = []
        self._first = 0
        self._drawn: list[list[Content]] = []
        self._tops: list[int] = []
        self._height = 0
        self._width = 0
        self._marked: int | None = None

    @property
    def more(self) -> bool:
        """True while older turns are above the window."""
        return self._first > 0

    @property
    def lines(self) -> int:
        """The height of the laid-out turns, in lines."""
        return self._height

    def fill(self, turns: Sequence[TurnView]) -> None:
        """Replace all turns by ``turns``, oldest first."""
        self._turns = list(turns)
        self._first = max(0, len(self._turns) - WINDOW)
        self._marked = None
        self._lay_out()
        self.refresh(layout=True)

    def extend(self, turns: Sequence[TurnView]) -> list[int]:
        """Add turns at the end; returns the height of each in lines."""
        for turn in turns:
            self._turns.append(turn)
            self._append(turn)
        self.refresh(layout=True)
        return [len(rows) for rows in self._drawn[len(self._drawn) - len(turns) :]]

    def replace(self, place: int, turn: TurnView) -> None:
        """Draw another version of the turn at ``place``."""
        self._turns[place] = turn
        if place >= self._first:
            self._lay_out()
            self.refresh(layout=True)

    def older(self, count: int | None = None) -> int:
        """Widen the window by ``count`` older turns, or as many as it begins with.

        Returns the number of lines added on top.
        """
        before = self._height
        first = max(0, self._first - (WINDOW if count is None else count))
        added = self._draw_all(first, self._first)
        self._first = first
        self._drawn[:0] = added
        self._measure()
        self.refresh(layout=True)
        return self._height - before

    def mark(self, place: int | None) -> None:
        """Mark the turn at ``place`` as the one under the cursor."""
        if place != self._marked:
            self._marked = place
            self.refresh()

    def where(self, place: int) -> tuple[int, int]:
        """The first line and the height of the turn at ``place``, widening the window to it."""
        if place < self._first:
            self.older(self._first - place)
        index = place - self._first
        return self._tops[index], len(self._drawn[index])

    def at(self, line: int) -> int:
        """The place of the turn on ``line``."""
        return self._first + max(0, bisect_right(self._tops, line) - 1)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        if width != self._width:
            self._width = width
            self._lay_out()
        return self._height

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        index = bisect_right(self._tops, y) - 1
        if not 0 <= index < len(self._drawn) or y >= self._height:
            return Strip.blank(width)
        rows = self._drawn[index]
        content = rows[y - self._tops[index]]
        if self._first + index == self._marked and (y > self._tops[index] or content):
            content = content.pad_right(max(0, width - content.cell_length)).stylize(CURSOR)
        return Visual.to_strips(self, content, width, 1, self.visual_style, pad=True)[0]

    def _lay_out(self) -> None:
        self._drawn = self._draw_all(self._first, len(self._turns))
        self._measure()

    def _draw_all(self, start: int, end: int) -> list[list[Content]]:
        return [
            draw(turn, self._width, close=self._stands_close(place))
            for place, turn in enumerate(self._turns[start:end], start)
        ]

    def _stands_close(self, place: int) -> bool:
        return stands_close(self._turns[place], self._turns[place - 1] if place else None)

    def _append(self, turn: TurnView) -> None:
        rows = draw(turn, self._width, close=self._stands_close(len(self._turns) - 1))
        self._tops.append(self._height)
        self._drawn.append(rows)
        self._height += len(rows)

    def _measure(self) -> None:
        self._tops = []
        self._height = 0
        for rows in self._drawn:
            self._tops.append(self._height)
            self._height += len(rows)

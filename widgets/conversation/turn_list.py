"""The turns of a conversation, thousands of them, drawn line by line on demand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Region

from widgets.conversation.turn_lines import draw, stands_close
from widgets.text.line_view import LineView
from widgets.text.style_names import CURSOR
from widgets.views import TurnView

WINDOW = 100
"""How many turns are laid out at first, and how many more each time the reader comes to the top."""


class TurnList(LineView):
    """Turns as one widget as tall as all of its lines; only visible lines are rendered.

    Only a window of the newest turns is laid out: :meth:`older` widens it. The scrolling container
    around it does the scrolling.
    """

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[TurnView] = []
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

    def fill(self, turns: Sequence[TurnView]) -> None:
        """Replace all turns by ``turns``, oldest first."""
        self.turns = list(turns)
        self._first = max(0, len(self.turns) - WINDOW)
        self._marked = None
        self._lay_out()
        self.refresh(layout=True)

    def insert(self, place: int, turn: TurnView, *, forgets: bool) -> None:
        """Add a turn before the one at ``place``. With ``forgets`` what is far above is laid out no more."""
        self.turns.insert(place, turn)
        at = place - self._first
        self._drawn.insert(at, self._draw(place))
        if at + 1 < len(self._drawn):
            self._drawn[at + 1] = self._draw(place + 1)  # it may stand close to another now
        if forgets and len(self._drawn) > 2 * WINDOW:
            self._first += WINDOW
            del self._drawn[:WINDOW]
        self._measure()
        self.refresh(layout=True)

    def replace(self, place: int, turn: TurnView) -> None:
        """Draw another version of the turn at ``place``."""
        self.turns[place] = turn
        at = place - self._first
        if at < 0:
            return
        before, rows = self._drawn[at], self._draw(place)
        self._drawn[at] = rows
        if len(rows) != len(before):
            self._measure()
            self.refresh(layout=True)
            return
        changed = [y for y, row in enumerate(rows) if not row.is_same(before[y])]
        if changed:
            top = self._tops[at] + changed[0]
            self.refresh(Region(0, top, self.size.width, changed[-1] - changed[0] + 1))

    def older(self, count: int | None = None) -> int:
        """Widen the window by ``count`` older turns, or as many as it begins with.

        Returns the number of lines added on top.
        """
        before = self._height
        first = max(0, self._first - (WINDOW if count is None else count))
        self._drawn[:0] = [self._draw(place) for place in range(first, self._first)]
        self._first = first
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
        at = place - self._first
        return self._tops[at], len(self._drawn[at])

    def at(self, line: int) -> int:
        """The place of the turn on ``line``."""
        return self._first + max(0, bisect_right(self._tops, line) - 1)

    def count_lines(self, width: int) -> int:
        if width != self._width:
            self._width = width
            self._lay_out()
        return self._height

    def line_at(self, y: int, width: int) -> Content:
        at = bisect_right(self._tops, y) - 1
        content = self._drawn[at][y - self._tops[at]]
        if self._first + at == self._marked and (y > self._tops[at] or content):
            content = content.pad_right(max(0, width - content.cell_length)).stylize(CURSOR)
        return content

    def _lay_out(self) -> None:
        self._drawn = [self._draw(place) for place in range(self._first, len(self.turns))]
        self._measure()

    def _draw(self, place: int) -> list[Content]:
        if not self._width:
            return []  # before the first layout, which asks for the height
        before = self.turns[place - 1] if place else None
        turn = self.turns[place]
        return draw(turn, self._width, close=stands_close(turn, before))

    def _measure(self) -> None:
        self._tops = []
        self._height = 0
        for rows in self._drawn:
            self._tops.append(self._height)
            self._height += len(rows)

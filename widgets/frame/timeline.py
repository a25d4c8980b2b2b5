"""The timeline of a replay: the position in a session's journal."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from widgets.text.style_names import ACCENT, DIM, RULE, STRONG, Part, line, spread

_PAGE = 10
_RAIL_LEAST = 8


class Timeline(Widget, can_focus=True):
    """A rail from the first row of a session to the last, with the position on it.

    ``position`` counts rows shown, 0 to ``total``; ``label`` describes the row ("wave 3 · seq 41 ·
    14:02:11"); ``marks`` are positions that stand out on the rail, those of waves. Left and right move
    by one row, page up and page down by a tenth, home and end to the edges; each posts :class:`Moved`
    and leaves the moving to the application.
    """

    DEFAULT_CSS = """
    Timeline { height: 1; width: 1fr; padding: 0 1; text-wrap: nowrap; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("left,h", "move(-1)", "back", show=False),
        Binding("right,l", "move(1)", "on", show=False),
        Binding("pageup", "page(-1)", "far back", show=False),
        Binding("pagedown", "page(1)", "far on", show=False),
        Binding("home", "edge(0)", "start", show=False),
        Binding("end", "edge(1)", "end", show=False),
    ]

    position: reactive[int] = reactive(0)
    total: reactive[int] = reactive(0)
    label: reactive[str] = reactive("")
    marks: reactive[tuple[int, ...]] = reactive(())

    @dataclass
    class Moved(Message):
        """The user moved to ``position``."""

        position: int

    def show(self, position: int, total: int, label: str = "") -> None:
        """Draw ``position`` of ``total``."""
        self.total = max(0, total)
        self.position = max(0, min(position, self.total))
        self.label = label

    def action_move(self, step: int) -> None:
        """Ask to move by ``step`` rows."""
        self._ask(self.position + step)

    def action_page(self, way: int) -> None:
        """Ask to move by a tenth of the session."""
        self._ask(self.position + way * max(1, self.total // _PAGE))

    def action_edge(self, end: int) -> None:
        """Ask to move to the start (0) or the end (1)."""
        self._ask(self.total if end else 0)

    def on_click(self, event: events.Click) -> None:
        """Move to the place on the rail that was clicked."""
        rail = self._rail_cells()
        place = event.x - self.gutter.left - 2
        if rail > 1 and 0 <= place < rail:
            self._ask(round(place * self.total / (rail - 1)))

    def _ask(self, position: int) -> None:
        position = max(0, min(position, self.total))
        if position != self.position:
            self.position = position
            self.post_message(self.Moved(position))

    def _words(self) -> Content:
        count = line((f"{self.position:,}", STRONG), (f" / {self.total:,}", DIM))
        return Content.assemble(count, "  ", line((self.label, DIM))) if self.label else count

    def _rail_cells(self) -> int:
        # The widest count keeps the rail still while the position grows.
        widest = len(f"{self.total:,}") * 2 + 3
        label = 2 + line(self.label).cell_length if self.label else 0
        rail = self.content_size.width - widest - label - 6
        return rail if rail >= _RAIL_LEAST else 0

    def render(self) -> Content:
        width = self.content_size.width
        rail = self._rail_cells()
        if not rail:
            return self._words().truncate(width, ellipsis=True)
        place = round(self.position * (rail - 1) / self.total) if self.total else 0
        content = line(
            ("◂ ", ACCENT if self.position > 0 else RULE),
            *self._cells(rail, place),
            (" ▸", ACCENT if self.position < self.total else RULE),
        )
        return spread(content, self._words(), width)

    def _cells(self, rail: int, place: int) -> list[Part]:
        """Draw the rail with its marks; the position covers a mark at its place."""
        marked = {round(mark * (rail - 1) / self.total) for mark in self.marks if self.total}
        cells: list[Part] = []
        edges = [*sorted({0, place, place + 1, rail, *marked, *(cell + 1 for cell in marked)})]
        for start, end in pairwise(edge for edge in edges if edge <= rail):
            if start == place:
                cells.append(("●", STRONG))
            elif start in marked:
                cells.append(("┿" if start < place else "┼", ACCENT if start < place else DIM))
            else:
                is_past = start < place
                cells.append(
                    (("━" if is_past else "─") * (end - start), ACCENT if is_past else RULE)
                )
        return cells

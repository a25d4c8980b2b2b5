"""The detail of a row: fields, sentences and texts of others, wrapped so that none passes for another.

A text that wraps goes on below its own beginning, behind its bar or beside the name of its field, and never
at the edge, where the screen's own lines begin. Only visible lines are made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from msgspec import Struct
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from widgets.text.clean import clean
from widgets.text.line_view import draw_strip
from widgets.text.style_names import DIM, STRONG, Part, line
from widgets.text.wrapped import wrap_line

_LEAST = 8
_FOLDED_FROM = 2_000
"""Rows from which on they are broken at the edge."""
_GAP = 2
_NAME_MOST = 14
_BAR = "│ "
_NOTHING = Content("")


class DetailRow(Struct, frozen=True):
    """One row: its text, and what is drawn before the first and before each further line of it."""

    text: Content
    lead: Content = _NOTHING
    further: Content = _NOTHING


SheetRow = tuple[str, Content | None]
"""A name and its value; without a value the name is a heading."""


def sentence(*parts: Part) -> DetailRow:
    """Return a row that begins at the edge."""
    return DetailRow(line(*parts))


def fields(pairs: Iterable[tuple[str, str]]) -> list[DetailRow]:
    """Return a row for each field that has a value: its name in a column, then the value."""
    shown = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in shown), default=0) + _GAP
    space = Content(" " * width)
    return [DetailRow(line(value), line((f"{name:<{width}}", DIM)), space) for name, value in shown]


def entries(heading: str, pairs: Iterable[tuple[str, str]]) -> list[DetailRow]:
    """Return rows below a heading, each with a dim beginning; nothing without any."""
    shown = [
        DetailRow(line(text), line((f"  {lead}  ", DIM)), Content("    ")) for lead, text in pairs
    ]
    return [sentence(), sentence((heading, STRONG)), *shown] if shown else []


def sheet(rows: Iterable[SheetRow]) -> list[DetailRow]:
    """Return names and values in two columns; a name alone is a heading, a value alone is as wide as all."""
    rows = list(rows)
    widest = max((line(name).cell_length for name, value in rows if value is not None), default=0)
    column = min(widest, _NAME_MOST) + _GAP
    drawn: list[DetailRow] = []
    for name, value in rows:
        if value is None:
            drawn.append(sentence((name, STRONG)))
            continue
        lead = line((name, DIM)).truncate(column - _GAP, ellipsis=True)
        lead = lead.pad_right(column - lead.cell_length) if name else _NOTHING
        space = Content(" " * lead.cell_length)
        for part in value.split("\n", allow_blank=True) or [_NOTHING]:
            drawn.append(DetailRow(part, lead, space))
            lead = space
    return drawn


def quoted(heading: str, text: str) -> list[DetailRow]:
    """Return text of others below a heading, each line behind a bar; nothing without text."""
    if not text.strip():
        return []
    bar = line((_BAR, DIM))
    lines = [DetailRow(Content(each), bar, bar) for each in clean(text).rstrip("\n").split("\n")]
    return [sentence((heading, STRONG)), *lines]


class Detail(ScrollView, can_focus=False):
    """Draw rows; posts nothing."""

    DEFAULT_CSS = """
    Detail { height: 1fr; width: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 -- Textual's name for it
        super().__init__(id=id)
        self._rows: Sequence[DetailRow] = ()
        self._lines = WrappedRows((), 0)
        self._width = 0
        self._wanted: int | None = None
        """The row to scroll to, once there is a size."""
        self._seen = 0

    @property
    def plain(self) -> str:
        """The drawn text, wrapped as it is."""
        return "\n".join(self._lines[y].plain for y in range(len(self._lines)))

    @property
    def seen(self) -> int:
        """The number of lines that have been in view, from the first one on without a gap."""
        return min(self._seen, len(self._lines))

    @property
    def count(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def read_on(self) -> None:
        """Scroll to the first line that has not been in view."""
        self.scroll_to(y=self.seen, animate=False)

    def read_again(self) -> None:
        """Scroll to the first line, and count from there what has been in view."""
        self._seen = 0
        self.scroll_home(animate=False)
        self._note_seen()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._note_seen()

    def _note_seen(self) -> None:
        first = self.scroll_offset.y
        if first <= self._seen:
            self._seen = max(self._seen, first + self.content_size.height)

    def show(self, rows: Sequence[DetailRow]) -> None:
        """Draw ``rows``."""
        if rows != self._rows:
            self._rows = rows
            self._lay_out()

    def scroll_to_row(self, place: int) -> None:
        """Scroll so that a row is near the top, as soon as there is a size."""
        self._wanted = place
        self._seek()

    def _seek(self) -> None:
        if self._wanted is not None and self.size.height and len(self._lines):
            above = self._lines.top_of(self._wanted)
            self.scroll_to(y=max(0, above - self.size.height // 4), animate=False)
            self._wanted = None

    def on_resize(self, event: events.Resize) -> None:
        """Wrap again where the width is another."""
        if self._content_width() != self._width:
            self._lay_out()
        self._note_seen()

    def _content_width(self) -> int:
        # Always with room for the scrollbar, once: wrapping must not depend on how long the text is, nor on
        # whether the scrollbar is there already, which ``self.gutter`` counts.
        # ``size`` is without the padding.
        return max(_LEAST, self.size.width - self.styles.scrollbar_size_vertical)

    def _lay_out(self) -> None:
        self._width = width = self._content_width()
        self._lines = WrappedRows(self._rows, width)
        self.virtual_size = Size(0, len(self._lines))
        self._seen = 0
        self._note_seen()
        self.refresh()
        self.call_after_refresh(self._seek)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if width < 1:
            return Strip.blank(0)
        place = y + self.scroll_offset.y
        drawn = self._lines[place] if place < len(self._lines) else Content("")
        return draw_strip(self, drawn.truncate(width), width)


class WrappedRows:
    """Rows in a width: how many lines they take is counted at once, a line is made when it is asked for.

    Many rows are broken at the edge, as code in a diff is: to look for words in all of them takes too long.
    """

    def __init__(self, rows: Sequence[DetailRow], width: int) -> None:
        self._rows, self._width = rows, width
        self._folds = len(rows) > _FOLDED_FROM
        self._tops = [0, *accumulate(_count_lines(row, width, self._folds) for row in rows)]
        self._last: tuple[int, list[Content]] = (-1, [])

    def __len__(self) -> int:
        return self._tops[-1]

    def __getitem__(self, y: int) -> Content:
        if not 0 <= y < len(self):
            raise IndexError(y)
        place = bisect_right(self._tops, y) - 1
        if self._last[0] != place:
            self._last = (place, wrap_row(self._rows[place], self._width, folds=self._folds))
        return self._last[1][y - self._tops[place]]

    def top_of(self, place: int) -> int:
        """Return the first line of a row."""
        return self._tops[min(place, len(self._rows))]


def _count_lines(row: DetailRow, width: int, folds: bool) -> int:
    text = row.text.plain
    room = max(_LEAST, width - max(row.lead.cell_length, row.further.cell_length))
    if text.isascii():
        if len(text) <= room:
            return 1
        if folds:
            return -(-len(text) // room)
    return len(_break(row.text, room, folds))


def _break(text: Content, room: int, folds: bool) -> list[Content]:
    if text.cell_length <= room:
        return [text]
    return text.fold(room) if folds else wrap_line(text, room)


def wrap_row(row: DetailRow, width: int, *, folds: bool = False) -> list[Content]:
    """Return the lines of a row in ``width`` cells, broken between words or, if it ``folds``, at the edge."""
    room = max(_LEAST, width - max(row.lead.cell_length, row.further.cell_length))
    return [
        Content.assemble(row.further if place else row.lead, piece)
        for place, piece in enumerate(_break(row.text, room, folds))
    ]

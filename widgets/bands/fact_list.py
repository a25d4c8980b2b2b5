"""The facts of a packet: a list that stays fast with 50,000 rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec.structs import replace
from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Size
from textual.message import Message

from widgets.text.cursor_list import CursorList, mark_row
from widgets.text.numerals import tokens
from widgets.text.style_names import ACCENT, BAD, DIM, GOOD, STRONG, WARN, line
from widgets.views import FactView, Fate

Order = Literal["given", "utility", "tokens"]

SIGNS: dict[Fate, tuple[str, str]] = {
    "kept": ("✔", GOOD),
    "shortened": ("≈", WARN),
    "dropped": ("✗", BAD),
    "added": ("+", GOOD),
    "removed": ("−", BAD),
    "changed": ("~", WARN),
}
_ONE = 1_000_000
_WORTH_CELLS = 6
_TOKEN_CELLS = 6
_LEVEL_CELLS = 9
_WHY_MOST = 56
_WHY_SHORT = 14
_WHY_LEAST = 3
_SOURCE_LEAST = 16
_ORIGIN_LEAST = 18
_GAP = "  "


class FactList(CursorList):
    """Draw one line a fact, below a line of column names; only visible rows are drawn.

    ``u`` and ``t`` sort by utility and tokens (again: reversed), ``o`` restores the original order.
    Empty columns are left out; narrow panes lose the provenance first. :class:`ProvenanceRequested` asks
    for the provenance of visible rows.
    """

    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("u", "sort('utility')", "by utility", show=False),
        Binding("t", "sort('tokens')", "by tokens", show=False),
        Binding("o", "sort('given')", "in order", show=False),
        Binding("enter", "open", "read", show=False),
        Binding("p", "pin", "pin or unpin", show=False),
    ]

    HEAD = 1

    @dataclass
    class Opened(Message):
        """The user opened a fact."""

        key: str

    @dataclass
    class PinToggled(Message):
        """The user pinned or unpinned a fact."""

        key: str
        pinned: bool

    @dataclass
    class ProvenanceRequested(Message):
        """The provenance of these visible rows is unknown; answer with :meth:`FactList.provide`."""

        keys: tuple[str, ...]

    def __init__(self, rows: Sequence[FactView] = (), *, empty: str = "No facts yet.") -> None:
        super().__init__()
        self._rows: list[FactView] = list(rows)
        self._search_texts: list[str] | None = None
        self._shown: list[int] = list(range(len(rows)))
        self._filter = ""
        self._empty, self._unmatched = empty, "No row matches. esc clears the filter."
        self._origins: dict[str, str] = {}
        self._requested: set[str] = set()
        self.order: Order = "given"
        self.descending = True

    def on_mount(self) -> None:
        self._arrange()

    @property
    def rows(self) -> Sequence[FactView]:
        """All rows, in the order given."""
        return self._rows

    @property
    def count(self) -> int:
        """The number of rows that pass the filter."""
        return len(self._shown)

    @property
    def at_cursor(self) -> FactView | None:
        """The row under the cursor."""
        return self._rows[self._shown[self.cursor]] if self.cursor < len(self._shown) else None

    def show(self, rows: Sequence[FactView], *, empty: str = "", unmatched: str = "") -> None:
        """Replace the rows; ``empty`` is the text without any, ``unmatched`` where none passes the filter.

        Filter and order stay.
        """
        self._rows, self._search_texts = list(rows), None
        self._empty, self._unmatched = empty or self._empty, unmatched or self._unmatched
        self._arrange()

    def filter(self, typed: str) -> None:
        """Show only rows with every word of ``typed`` in source, verdict, level or reason."""
        self._filter = typed
        self._arrange()

    def provide(self, origins: Mapping[str, str]) -> None:
        """Set the provenance of facts, as text by key."""
        self._origins.update(origins)
        self.refresh()

    def set_pinned(self, key: str, pinned: bool) -> None:
        """Draw the row of ``key`` as pinned or not."""
        for place, row in enumerate(self._rows):
            if row.key == key:
                self._rows[place] = replace(row, pinned=pinned)
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._request_provenance()

    def on_resize(self, event: events.Resize) -> None:
        """Request the provenance of more rows."""
        del event
        self._request_provenance()

    def action_sort(self, order: Order) -> None:
        """Sort by ``order``; again: reversed."""
        self.descending = not self.descending if order == self.order else True
        self.order = order
        self._arrange()

    def action_open(self) -> None:
        """Ask to read the fact under the cursor."""
        if (row := self.at_cursor) is not None:
            self.post_message(self.Opened(row.key))

    def action_pin(self) -> None:
        """Ask to pin the fact under the cursor, or to unpin it."""
        if (row := self.at_cursor) is not None:
            self.post_message(self.PinToggled(row.key, not row.pinned))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the row that was clicked; a double click opens it."""
        place = event.y - self.gutter.top - self.HEAD + self.scroll_offset.y
        if event.y - self.gutter.top >= self.HEAD and 0 <= place < len(self._shown):
            if event.chain == 2 and place == self.cursor:
                self.action_open()
            self.cursor = place

    def _arrange(self) -> None:
        rows, shown = self._rows, list(range(len(self._rows)))
        typed = self._filter.casefold().split()
        if typed:
            if self._search_texts is None:
                self._search_texts = [
                    f"{row.source_ref} {row.fate} {row.level} {row.why}".casefold() for row in rows
                ]
            texts = self._search_texts
            shown = [place for place in shown if all(word in texts[place] for word in typed)]
        if self.order == "utility":
            shown.sort(key=lambda place: rows[place].utility or 0, reverse=self.descending)
        elif self.order == "tokens":
            shown.sort(key=lambda place: rows[place].tokens, reverse=self.descending)
        elif not self.descending:
            shown.reverse()
        self._shown = shown
        self.virtual_size = Size(0, self.HEAD + max(1, len(shown)))
        self.cursor = 0
        self.scroll_to(y=0, animate=False)
        self.refresh()
        self._request_provenance()

    def _request_provenance(self) -> None:
        first, height = round(self.scroll_y), self.content_size.height
        visible = [self._rows[place].key for place in self._shown[first : first + height]]
        unknown = tuple(key for key in visible if key not in self._requested)
        if unknown and self.is_attached:
            self._requested.update(unknown)
            self.post_message(self.ProvenanceRequested(unknown))

    def content_at(self, y: int, width: int) -> Content:
        if not self._shown:
            lines = (self._unmatched if self._rows else self._empty).split("\n")
            return line((lines[y], DIM)) if y < len(lines) else Content("")
        columns = self._columns(width)
        if y < self.HEAD:
            return columns.head(self.order, self.descending)
        place = y - self.HEAD
        if place >= len(self._shown):
            return Content("")
        row = self._rows[self._shown[place]]
        content = columns.draw(row, self._origins.get(row.key, ""))
        if place == self.cursor:
            content = mark_row(content, width)
        return content

    def _columns(self, width: int) -> _Columns:
        # Only visible rows count: reading 50,000 rows for every line would be slow.
        first = self.scroll_offset.y
        visible = [
            self._rows[place] for place in self._shown[first : first + self.content_size.height]
        ]
        why = min(_WHY_MOST, max((line(row.why).cell_length for row in visible), default=0))
        source = max((line(row.source_ref).cell_length for row in visible), default=0)
        has_worth = self._rows[0].utility is not None
        return _Columns.fit(width, max(why, _WHY_LEAST), source, worth=has_worth)


class _Columns(msgspec.Struct, frozen=True):
    """The widths of the columns of one drawing: 0 leaves a column out."""

    worth: int
    level: int
    source: int
    why: int
    origin: int

    @classmethod
    def fit(cls, width: int, why: int, source: int, *, worth: bool) -> _Columns:
        """Share ``width``: ``why`` and ``source`` are the widest texts of the two columns, in cells."""
        worth_cells = _WORTH_CELLS + 2 if worth else 0
        room = width - 4 - worth_cells - _TOKEN_CELLS - 2
        # A short reason comes first, then what tells the rows apart, then the rest of the reason.
        short = max(3, min(why, _WHY_SHORT, room - 2 - _SOURCE_LEAST))
        source = max(_SOURCE_LEAST, min(source, room - short - 2))
        if room - short - 2 < _SOURCE_LEAST:
            return cls(worth_cells, 0, max(1, room), 0, 0)
        why = max(short, min(why, room - source - 2))
        room -= why + source + 4
        level = _LEVEL_CELLS if room > _LEVEL_CELLS + 2 else 0
        room -= level + 2 if level else 0
        origin = room - 2 if room - 2 >= _ORIGIN_LEAST else 0
        return cls(worth_cells, level, source, why, origin)

    def head(self, order: Order, descending: bool) -> Content:
        arrow = "▾" if descending else "▴"
        worth = "UTIL" + (arrow if order == "utility" else "")
        cost = "TOK" + (arrow if order == "tokens" else "")
        cells = ["    "]
        if self.worth:
            cells.append(f"{worth:>{_WORTH_CELLS}}{_GAP}")
        cells.append(f"{cost:>{_TOKEN_CELLS}}{_GAP}")
        if self.level:
            cells.append(f"{'LEVEL':<{self.level}}{_GAP}")
        cells.append(f"{'SOURCE'[: self.source]:<{self.source}}")
        if self.why:
            cells.append(f"{_GAP}{'WHY':<{self.why}}")
        if self.origin:
            cells.append(f"{_GAP}PROVENANCE")
        return line(("".join(cells), DIM))

    def draw(self, row: FactView, origin: str) -> Content:
        sign, style = SIGNS[row.fate]
        parts: list[Content] = [line((sign, style), " ", ("◆ " if row.pinned else "  ", ACCENT))]
        quiet = DIM if row.fate in ("dropped", "removed") else ""
        if self.worth:
            worth = "" if row.utility is None else f"{row.utility / _ONE:.3f}"
            parts.append(line((f"{worth:>{_WORTH_CELLS}}{_GAP}", quiet)))
        parts.append(line((f"{tokens(row.tokens):>{_TOKEN_CELLS}}{_GAP}", quiet or STRONG)))
        if self.level:
            parts += [_cell(row.level or "–", self.level, DIM), Content(_GAP)]
        parts.append(_cell(row.source_ref, self.source, quiet))
        if self.why:
            parts += [Content(_GAP), _cell(row.why, self.why, style if quiet else DIM)]
        if self.origin:
            parts += [Content(_GAP), line((origin, DIM)).truncate(self.origin, ellipsis=True)]
        return Content("").join(parts)


def _cell(text: str, cells: int, style: str) -> Content:
    return line((text, style)).truncate(cells, ellipsis=True, pad=True)

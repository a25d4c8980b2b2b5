"""All keys that work now, in groups and columns: a line of each says what the next key does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from widgets.text.style_names import DIM, STRONG, line
from widgets.views import KeyHintView

KeyGroup = tuple[str, Sequence[KeyHintView]]
"""A heading, and its keys."""

_HEAD_CELLS = 10
_GAP = 2


class KeyMenu(Widget):
    """Draw groups of keys, each below its heading; a click posts :class:`Picked`.

    Entries stand in columns of one width; ``full`` has whole phrases, ``short`` one or two words for each,
    which are drawn where the phrases would take more than ``most`` lines.
    """

    DEFAULT_CSS = "KeyMenu { height: auto; width: 1fr; text-wrap: nowrap; }"

    @dataclass
    class Picked(Message):
        """The user clicked an entry; ``key`` is the key that it stands for."""

        key: str

    def __init__(self, full: Sequence[KeyGroup], short: Sequence[KeyGroup], most: int) -> None:
        super().__init__()
        self._full, self._short, self._most = full, short, most

    def _lay_out(self, width: int) -> list[tuple[str, list[tuple[KeyHintView, int, int]]]]:
        """Return the lines: a heading or nothing, and entries with their first cell and their width."""
        lines = _lay_out(self._full, width)
        return lines if len(lines) <= self._most else _lay_out(self._short, width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lay_out(width))

    def render(self) -> Content:
        rows = []
        rows_shown = self._lay_out(self.content_size.width)
        keys = _key_cells(hint for _, entries in rows_shown for hint, _, _ in entries)
        for heading, entries in rows_shown:
            parts = [line((f"{heading:<{_HEAD_CELLS}}", DIM))]
            for hint, _, cells in entries:
                drawn = line((f"{hint.key:<{keys}} ", STRONG), (hint.label, ""))
                parts.append(drawn.truncate(cells - _GAP, ellipsis=True).pad_right(0))
                parts.append(Content(" " * (cells - parts[-1].cell_length)))
            rows.append(Content.assemble(*parts))
        return Content("\n").join(rows)

    def on_click(self, event: events.Click) -> None:
        """Report the entry under the mouse."""
        rows = self._lay_out(self.content_size.width)
        if not 0 <= event.y < len(rows):
            return
        event.stop()
        for hint, first, cells in rows[event.y][1]:
            if first <= event.x < first + cells and hint.press:
                self.post_message(self.Picked(hint.press))


def _lay_out(
    groups: Sequence[KeyGroup], width: int
) -> list[tuple[str, list[tuple[KeyHintView, int, int]]]]:
    hints = [hint for _, entries in groups for hint in entries]
    labels = max((line(hint.label).cell_length for hint in hints), default=0)
    widest = _key_cells(hints) + 1 + labels + _GAP
    room = max(1, width - _HEAD_CELLS)
    columns = max(1, room // max(1, widest))
    cells = room // columns
    rows = []
    for heading, entries in groups:
        for at, some in groupby(enumerate(entries), key=lambda pair: pair[0] // columns):
            placed = [
                (hint, _HEAD_CELLS + (place % columns) * cells, cells) for place, hint in some
            ]
            rows.append(("" if at else heading, placed))
    return rows


def _key_cells(hints: Iterable[KeyHintView]) -> int:
    """Return the width of the column of keys: of all, so that labels stand below each other."""
    return max((line(hint.key).cell_length for hint in hints), default=0)

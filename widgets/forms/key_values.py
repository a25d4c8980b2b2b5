"""Names and values in two columns, under headings."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from widgets.text.style_names import DIM, STRONG, line
from widgets.text.wrapped import wrap_line

_COLUMN_MOST = 14
_VALUE_LEAST = 4


class SheetRow(msgspec.Struct, frozen=True):
    """One row: a cleaned ``value`` next to a dim ``name``.

    Without a value the name is a heading; without a name the value has the whole width.
    """

    name: str
    value: Content | None = None


class Sheet(Widget):
    """Draw rows with wrapped values next to their names. Posts nothing."""

    DEFAULT_CSS = "Sheet { height: auto; width: 1fr; text-wrap: nowrap; }"

    rows: reactive[tuple[SheetRow, ...]] = reactive((), layout=True)

    def __init__(self, rows: Sequence[SheetRow] = (), *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.set_reactive(Sheet.rows, tuple(rows))
        self._laid_out: tuple[tuple[SheetRow, ...], int, list[Content]] | None = None

    def show(self, rows: Sequence[SheetRow]) -> None:
        """Draw ``rows``; without any the sheet takes no room."""
        self.rows = tuple(rows)
        self.display = bool(rows)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width))

    def render(self) -> Content:
        return Content("\n").join(self._lines(self.content_size.width))

    def _lines(self, width: int) -> list[Content]:
        cached = self._laid_out
        if cached is None or cached[0] is not self.rows or cached[1] != width:
            cached = self._laid_out = (self.rows, width, self._lay_out(width))
        return cached[2]

    def _lay_out(self, width: int) -> list[Content]:
        names = [line(row.name) for row in self.rows if row.value is not None]
        longest = max((name.cell_length for name in names), default=0)
        column = min(longest, _COLUMN_MOST, max(_VALUE_LEAST, width // 3)) + 2 if longest else 0
        rows: list[Content] = []
        for row in self.rows:
            if row.value is None:
                rows.append(line((row.name, STRONG)).truncate(max(1, width), ellipsis=True))
                continue
            indent = column if row.name else 0
            head = line((row.name, DIM)).truncate(max(0, indent - 2), ellipsis=True)
            for place, piece in enumerate(_wrapped(row.value, max(_VALUE_LEAST, width - indent))):
                left = head.pad_right(indent - head.cell_length) if place == 0 else " " * indent
                rows.append(Content.assemble(left, piece))
        return rows


def _wrapped(value: Content, width: int) -> list[Content]:
    lines = value.split("\n", allow_blank=True)
    return [piece for part in lines for piece in wrap_line(part, width)]

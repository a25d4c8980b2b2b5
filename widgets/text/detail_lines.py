"""Rows of a detail as a part of something that scrolls: only the lines in view are drawn."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from widgets.text.detail import DetailRow, WrappedRows
from widgets.text.line_view import LineView


class DetailLines(LineView):
    """Draw rows, wrapped to the width; posts nothing."""

    def __init__(self, rows: Sequence[DetailRow] = ()) -> None:
        super().__init__()
        self._rows = tuple(rows)
        self._drawn = (0, WrappedRows((), 0))

    @property
    def plain(self) -> str:
        """The text of the rows, unwrapped."""
        return "\n".join(row.lead.plain + row.text.plain for row in self._rows)

    def show(self, rows: Sequence[DetailRow]) -> None:
        """Draw other rows."""
        if tuple(rows) != self._rows:
            self._rows = tuple(rows)
            self._drawn = (0, WrappedRows((), 0))
            self.refresh(layout=True)

    def count_lines(self, width: int) -> int:
        return len(self._lines(width))

    def line_at(self, y: int, width: int) -> Content:
        return self._lines(width)[y].truncate(width)

    def _lines(self, width: int) -> WrappedRows:
        if self._drawn[0] != width:
            self._drawn = (width, WrappedRows(self._rows, width))
        return self._drawn[1]

"""What stands in the conversation while no session is followed: rows that wrap below their own beginning."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from widgets.text.detail import DetailRow, wrap_row


class Welcome(Static):
    """Draw rows as wide as the pane is; hidden without any."""

    DEFAULT_CSS = """
    Welcome { height: auto; width: 1fr; display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[DetailRow] = ()

    def show(self, rows: Sequence[DetailRow]) -> None:
        """Draw ``rows``; none hides the widget."""
        if rows != self._rows:
            self._rows = rows
            self.display = bool(rows)
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return sum(len(wrap_row(row, width)) for row in self._rows)

    def render(self) -> Content:
        width = self.content_size.width
        return Content("\n").join(piece for row in self._rows for piece in wrap_row(row, width))

"""Rows in a box that scrolls: words with their meanings, or what an answer will do."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content

from cockpit.app.dialogs.small_dialogs import Dialog
from widgets.text.detail import DetailRow
from widgets.text.detail_lines import DetailLines


class ScrollRows(Dialog[bool]):
    """Show rows until Escape or ``q``. With ``agrees``, what ``y`` does, ``y`` answers with True."""

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("q", "leave", "close", show=False),
        Binding("y", "agree", "agree", show=False),
        Binding("j,down", "scroll_by(1)", "down", show=False),
        Binding("k,up", "scroll_by(-1)", "up", show=False),
    ]

    def __init__(self, title: str, rows: Sequence[DetailRow], agrees: str = "") -> None:
        super().__init__()
        self._title, self._rows, self._agrees = title, rows, agrees

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="box", id="rows") as box:
            box.border_title = Content(self._title)
            keys = f"y {self._agrees} · esc stay" if self._agrees else "esc back"
            box.border_subtitle = Content(keys)
            yield DetailLines(self._rows)

    def action_agree(self) -> None:
        """Answer with True, where that is asked."""
        if self._agrees:
            self.dismiss(True)

    def action_scroll_by(self, step: int) -> None:
        """Scroll by a line."""
        self.query_one("#rows").scroll_relative(y=step, animate=False)

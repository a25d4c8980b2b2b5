"""The words of the screen and what each means.

Specified in ``docs/reference/screen.md``, words.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content

from cockpit.app.dialogs.small_dialogs import Dialog
from widgets.text.detail import fields
from widgets.text.detail_lines import DetailLines


class Words(Dialog[None]):
    """Words with their meanings, in a box that scrolls."""

    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("q", "leave", "close", show=False),
        Binding("j,down", "scroll_by(1)", "down", show=False),
        Binding("k,up", "scroll_by(-1)", "up", show=False),
    ]

    def __init__(self, words: Mapping[str, str]) -> None:
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="box", id="words") as box:
            box.border_title = Content("Words")
            box.border_subtitle = Content("esc back")
            yield DetailLines(fields(self._words.items()))

    def action_scroll_by(self, step: int) -> None:
        """Scroll by a line."""
        self.query_one("#words").scroll_relative(y=step, animate=False)

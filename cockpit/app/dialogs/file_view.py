"""A file of the project at one of its lines, to read, and to open in the user's editor there.

Specified in ``docs/reference/screen.md``, lists.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.app.dialogs.small_dialogs import Dialog
from cockpit.app.terminal.terminal_app import TerminalApp
from cockpit.core.errors import CockpitError
from widgets.text.clean import clean
from widgets.text.detail import Detail, DetailRow, sentence
from widgets.text.style_names import ACCENT, DIM, WARN, line

MOST_BYTES = 2_000_000
"""Bytes of a file that are shown; the end says so."""


class FileView(Dialog[None]):
    """The lines of a file, those from ``first`` to ``last`` marked."""

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("q,enter", "leave", "close", show=False),
        Binding("j,down", "scroll(1)", "down", show=False),
        Binding("k,up", "scroll(-1)", "up", show=False),
        Binding("space,pagedown", "page(1)", "page down", show=False),
        Binding("b,pageup", "page(-1)", "page up", show=False),
        Binding("o,ctrl+g", "edit", "open in the editor", show=False),
    ]

    def __init__(self, root: Path, path: str, first: int = 1, last: int = 0) -> None:
        super().__init__()
        self._root, self._path, self._first, self._last = root, path, first, last
        self._detail = Detail()

    def compose(self) -> ComposeResult:
        with Vertical(id="file", classes="box") as box:
            where = f"{self._path}:{self._first}" + (f"-{self._last}" if self._last else "")
            box.border_title = Content(clean(where, newlines=False))
            box.border_subtitle = Content("j k scroll · o open in your editor · esc back")
            yield self._detail

    async def on_mount(self) -> None:
        rows = await asyncio.to_thread(self._read)
        if self.is_attached:
            self._detail.show(rows)
            self._detail.scroll_to_row(max(0, self._first - 1))

    def _read(self) -> list[DetailRow]:
        try:
            with Confined(self._root).open_read(self._path) as file:
                data = file.read(MOST_BYTES + 1)
        except (OSError, PathRefused, CockpitError) as error:
            return [sentence((f"{self._path} cannot be read: {error}", WARN))]
        if b"\0" in data[:MOST_BYTES]:
            return [sentence((f"{self._path} is not a text.", WARN))]
        texts = clean(data[:MOST_BYTES].decode("utf-8", "replace")).split("\n")
        width = len(str(len(texts)))
        space = Content(" " * (width + 2))
        rows = []
        for number, text in enumerate(texts, 1):
            marked = self._last and self._first <= number <= self._last
            style = ACCENT if marked else DIM
            lead = line((f"{number:>{width}}{'▌' if marked else ' '} ", style))
            rows.append(DetailRow(Content(text), lead, space))
        if len(data) > MOST_BYTES:
            rows.append(sentence((f"Only the first {MOST_BYTES:,} bytes are shown.", WARN)))
        return rows

    def action_scroll(self, step: int) -> None:
        """Scroll by a line."""
        self._detail.scroll_relative(y=step, animate=False)

    def action_page(self, way: int) -> None:
        """Scroll by a page."""
        self._detail.scroll_relative(y=way * max(1, self._detail.size.height - 2), animate=False)

    async def action_edit(self) -> None:
        """Open the file in the user's editor, at the first marked line."""
        app = self.app
        if isinstance(app, TerminalApp) and await app.open_in_editor(
            self._root, self._path, self._first
        ):
            self._detail.show(await asyncio.to_thread(self._read))

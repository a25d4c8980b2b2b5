"""A list with a cursor, two lines a row: the work queue, and the lists of skills, notes and the like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message

from widgets.text.cursor_list import CursorList, mark_row
from widgets.text.style_names import DIM, STRONG, line, spread, tone
from widgets.work.task_views import QueuedView

_KEY_MOST = 10


class TwoLineList(CursorList):
    """Draw queued tasks, two lines each: the task, and below it the reasons.

    Only visible tasks are drawn. Posts :class:`Opened` and :class:`Moved`. With ``click_opens`` a click on
    the task under the cursor opens it; without, a double click does. Names are padded to at most
    ``name_cells``.
    """

    DEFAULT_CSS = "TwoLineList { padding: 0 1; }"
    TALL = 2

    @dataclass
    class Opened(Message):
        """The user opened this task."""

        key: str

    @dataclass
    class Moved(Message):
        """The cursor is on another task."""

        key: str

    def __init__(
        self,
        rows: Sequence[QueuedView] = (),
        *,
        empty: str = "No open tasks.",
        click_opens: bool = True,
        name_cells: int = _KEY_MOST,
        id: str | None = None,  # noqa: A002 -- Textual's name for it
    ) -> None:
        super().__init__(id=id)
        self._rows = tuple(rows)
        self.empty = empty
        """Drawn in place of rows while there are none."""
        self._click_opens = click_opens
        self._name_most = name_cells
        self._names = 0

    def on_mount(self) -> None:
        self.show(self._rows)

    @property
    def rows(self) -> Sequence[QueuedView]:
        """The tasks in their order."""
        return self._rows

    @property
    def at_cursor(self) -> QueuedView | None:
        """The task under the cursor."""
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    def show(self, rows: Sequence[QueuedView]) -> None:
        """Draw ``rows``; the cursor stays on its task."""
        last_row, rows_before, names_before = self.at_cursor, self._rows, self._names
        self._rows = tuple(rows)
        keys = [row.key for row in self._rows]
        self._names = min(
            self._name_most, max((cell_len(row.name or row.key) for row in self._rows), default=0)
        )
        cursor = min(self.cursor, max(0, len(keys) - 1))
        self.virtual_size = Size(0, max(1, self.TALL * len(keys)))
        if last_row is not None and last_row.key in keys:
            cursor = keys.index(last_row.key)
        self.cursor = cursor
        if len(rows_before) != len(self._rows) or names_before != self._names or not self._rows:
            self.refresh()
            return
        for place, (before, row) in enumerate(zip(rows_before, self._rows, strict=True)):
            if before != row:
                y = place * self.TALL - self.scroll_offset.y + self.gutter.top
                self.refresh(Region(0, y, self.outer_size.width, self.TALL))

    @property
    def count(self) -> int:
        return len(self._rows)

    def watch_cursor(self) -> None:
        super().watch_cursor()
        if (row := self.at_cursor) is not None:
            self.post_message(self.Moved(row.key))

    def action_open(self) -> None:
        """Ask to see the task under the cursor."""
        if (row := self.at_cursor) is not None:
            self.post_message(self.Opened(row.key))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the task that was clicked; again: open it."""
        place = (event.y - self.gutter.top + self.scroll_offset.y) // self.TALL
        if 0 <= place < len(self._rows):
            if event.chain == 2 if not self._click_opens else place == self.cursor:
                self.action_open()
            self.cursor = place

    def content_at(self, y: int, width: int) -> Content:
        if not self._rows:
            rows = line((self.empty, DIM)).wrap(width)
            return rows[y] if y < len(rows) else Content("")
        place, part = divmod(y, self.TALL)
        if place >= len(self._rows):
            return Content("")
        row = self._rows[place]
        digits = len(str(len(self._rows)))
        if part == 0:
            sign = (row.sign or "·", tone(row.tone))
            name = line((row.name or row.key, STRONG))
            if name.cell_length < self._names:
                name = name.pad_right(self._names - name.cell_length)
            left = Content.assemble(
                line((f"{place + 1:>{digits}} ", DIM), sign, " "), name, line("  ", row.title)
            )
            content = spread(left, line((row.state, tone(row.tone))), width)
        else:
            content = line(" " * (digits + 3), (row.why, DIM))
        if place == self.cursor:
            content = mark_row(content, width)
        return content

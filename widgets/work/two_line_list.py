"""A list with a cursor, two lines a row: the work queue, and the lists of skills, notes and the like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from widgets.text.line_view import draw_strip
from widgets.text.style_names import CURSOR, DIM, STRONG, line, spread, tone
from widgets.work.task_views import QueuedView

_TALL = 2
_KEY_MOST = 10


class TwoLineList(ScrollView, can_focus=True):
    """Draw queued tasks, two lines each: the task, and below it the reasons.

    Only visible tasks are drawn. Posts :class:`Opened` and :class:`Moved`. With ``click_opens`` a click on
    the task under the cursor opens it; without, a double click does. Names are padded to at most
    ``name_cells``.
    """

    DEFAULT_CSS = """
    TwoLineList { height: 1fr; width: 1fr; padding: 0 1; overflow-x: hidden; text-wrap: nowrap; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("j,down", "move(1)", "next", show=False),
        Binding("k,up", "move(-1)", "previous", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("home,g", "edge(0)", "first", show=False),
        Binding("end,G", "edge(-1)", "last", show=False),
        Binding("enter", "open", "open", show=False),
    ]

    cursor: reactive[int] = reactive(0)

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
        self.virtual_size = Size(0, max(1, _TALL * len(keys)))
        if last_row is not None and last_row.key in keys:
            cursor = keys.index(last_row.key)
        self.cursor = cursor
        if len(rows_before) != len(self._rows) or names_before != self._names or not self._rows:
            self.refresh()
            return
        for place, (before, row) in enumerate(zip(rows_before, self._rows, strict=True)):
            if before != row:
                y = place * _TALL - self.scroll_offset.y + self.gutter.top
                self.refresh(Region(0, y, self.outer_size.width, _TALL))

    def watch_cursor(self) -> None:
        top, height = self.cursor * _TALL, self.content_size.height
        if top < self.scroll_offset.y:
            self.scroll_to(y=top, animate=False)
        elif height and top + _TALL > self.scroll_offset.y + height:
            self.scroll_to(y=top + _TALL - height, animate=False)
        self.refresh()
        if (row := self.at_cursor) is not None:
            self.post_message(self.Moved(row.key))

    def action_move(self, step: int) -> None:
        """Move the cursor by ``step`` tasks."""
        self.cursor = max(0, min(self.cursor + step, len(self._rows) - 1))

    def action_page(self, way: int) -> None:
        """Move the cursor by a page."""
        self.action_move(way * max(1, self.content_size.height // _TALL - 1))

    def action_edge(self, place: int) -> None:
        """Move the cursor to the first (0) or last (-1) task."""
        self.cursor = 0 if place == 0 else max(0, len(self._rows) - 1)

    def action_open(self) -> None:
        """Ask to see the task under the cursor."""
        if (row := self.at_cursor) is not None:
            self.post_message(self.Opened(row.key))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the task that was clicked; again: open it."""
        place = (event.y - self.gutter.top + self.scroll_offset.y) // _TALL
        if 0 <= place < len(self._rows):
            if event.chain == 2 if not self._click_opens else place == self.cursor:
                self.action_open()
            self.cursor = place

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if width < 1:
            return Strip.blank(0)
        content = self._content(y + self.scroll_offset.y, width).truncate(width, ellipsis=True)
        return draw_strip(self, content, width)

    def _content(self, y: int, width: int) -> Content:
        if not self._rows:
            rows = line((self.empty, DIM)).wrap(width)
            return rows[y] if y < len(rows) else Content("")
        place, part = divmod(y, _TALL)
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
            content = content.pad_right(max(0, width - content.cell_length)).stylize(CURSOR)
        return content

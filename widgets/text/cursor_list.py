"""A list of rows with a cursor: only the lines in view are drawn, so that it stays fast with 50,000 rows."""

from __future__ import annotations

from textual.binding import Binding
from textual.content import Content
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from widgets.text.line_view import draw_strip
from widgets.text.style_names import CURSOR


class CursorList(ScrollView, can_focus=True):
    """Keys move the cursor over :attr:`count` rows; a subclass draws the lines, and says what Enter does."""

    DEFAULT_CSS = """
    CursorList { height: 1fr; width: 1fr; overflow-x: hidden; text-wrap: nowrap; }
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
    HEAD = 0
    """Lines above the rows, which stay while they scroll."""
    TALL = 1
    """Lines of a row."""

    cursor: reactive[int] = reactive(0)

    @property
    def count(self) -> int:
        """The number of rows that the cursor moves over."""
        raise NotImplementedError

    def content_at(self, y: int, width: int) -> Content:
        """Return what is drawn on line ``y`` of all lines, or below ``HEAD`` of those in view."""
        raise NotImplementedError

    def top_of(self, place: int) -> int:
        """Return the first line of a row, without those above all rows."""
        return place * self.TALL

    def watch_cursor(self) -> None:
        top, height = self.top_of(self.cursor), self.content_size.height - self.HEAD
        if top < self.scroll_offset.y:
            self.scroll_to(y=top, animate=False)
        elif height > 0 and top + self.TALL > self.scroll_offset.y + height:
            self.scroll_to(y=top + self.TALL - height, animate=False)
        self.refresh()

    def action_move(self, step: int) -> None:
        """Move the cursor by ``step`` rows."""
        self.cursor = max(0, min(self.cursor + step, self.count - 1))

    def action_page(self, way: int) -> None:
        """Move the cursor by a page."""
        rows = (self.content_size.height - self.HEAD) // self.TALL
        self.action_move(way * max(1, rows - 1))

    def action_edge(self, place: int) -> None:
        """Move the cursor to the first (0) or last (-1) row."""
        self.cursor = 0 if place == 0 else max(0, self.count - 1)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if width < 1:
            return Strip.blank(0)
        line = y if y < self.HEAD else y + self.scroll_offset.y
        content = self.content_at(line, width).truncate(width, ellipsis=True)
        return draw_strip(self, content, width)


def mark_row(content: Content, width: int) -> Content:
    """Draw the line of a row as the one under the cursor."""
    return content.pad_right(max(0, width - content.cell_length)).stylize(CURSOR)

"""A widget of many lines: each is drawn when it comes into view, and text in it can be selected."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.content import Content
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget


class LineView(Widget):
    """As tall as all of its lines; the scrolling container around it does the scrolling.

    A subclass says how many lines there are at a width, and what is on one of them.
    """

    DEFAULT_CSS = "LineView { height: auto; width: 1fr; text-wrap: nowrap; }"

    def count_lines(self, width: int) -> int:
        """Return the number of lines at a width of ``width`` cells."""
        raise NotImplementedError

    def line_at(self, y: int, width: int) -> Content:
        """Return the content of line ``y``, at most ``width`` cells."""
        raise NotImplementedError

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self.count_lines(width)

    _paints = False

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the lines in view; the mouse asks for single ones, to learn the places of characters."""
        self._paints = True
        try:
            return super().render_lines(crop)
        finally:
            self._paints = False

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if width < 1 or not 0 <= y < self.count_lines(width):
            return Strip.blank(max(0, width), self.rich_style)
        strip = draw_line(self, self.line_at(y, width), y, width)
        return strip if self._paints else strip.apply_offsets(0, y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text; only lines within the selection are made."""
        return extract_lines(self, selection, self.count_lines(self.size.width)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Draw the selection."""
        self.refresh()


def draw_line(widget: Widget, content: Content, y: int, width: int) -> Strip:
    """Return the strip of a line, with the part of it that is selected marked."""
    selection = widget.text_selection
    span = selection.get_span(y) if selection is not None else None
    if span is not None:
        first, last = span
        style = widget.screen.get_visual_style("screen--selection")
        content = content.stylize(style, first, len(content) if last == -1 else last)
    return draw_strip(widget, content, width)


def draw_strip(widget: Widget, content: Content, width: int) -> Strip:
    """Return the strip of a line of at most ``width`` cells, with stretches of one style joined.

    Textual's own way gives each stretch the place of its first character, for the mouse, which makes a style
    of its own for each: more than half of the time of a frame. Here the mouse asks for single lines.
    """
    base, get_style = widget.visual_style, widget._get_style
    drawn: dict[Style, RichStyle] = {}
    segments: list[Segment] = []
    before: RichStyle | None = None
    texts: list[str] = []
    cells = content.cell_length
    for text, style in content.render(base, end="", parse_style=get_style):
        rich_style = drawn.get(style)
        if rich_style is None:
            rich_style = drawn[style] = (base + style).rich_style
        if rich_style is not before and before is not None:
            segments.append(Segment("".join(texts), before))
            texts = []
        texts.append(text)
        before = rich_style
    if before is not None:
        segments.append(Segment("".join(texts), before))
    if cells < width:
        segments.append(Segment(" " * (width - cells), base.rich_style))
    return Strip(segments, max(cells, width))


def extract_lines(widget: LineView, selection: Selection, count: int) -> str:
    """Return the text of the lines in ``selection``."""
    width = widget.size.width
    first = selection.start.y if selection.start is not None else 0
    last = selection.end.y if selection.end is not None else count - 1
    rows = []
    for y in range(max(0, first), min(last, count - 1) + 1):
        text = widget.line_at(y, width).plain
        span = selection.get_span(y)
        if span is not None:
            start, end = span
            rows.append(text[start : len(text) if end == -1 else end].rstrip())
    return "\n".join(rows)

"""The list above the prompt: completions while typing, and the search through sent messages."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Offset, Size
from textual.reactive import reactive
from textual.widget import Widget

from widgets.text.style_names import CURSOR, DIM, line, spread
from widgets.views import CompletionView

_ROWS = 8
_CELLS = 72


class Completions(Widget):
    """Draw a few choices over the screen, the highlighted one marked ``▸``; takes no focus.

    The prompt owns the list: it fills it, moves the highlight and reads :attr:`chosen`.
    """

    DEFAULT_CSS = """
    Completions { overlay: screen; constrain: inside; height: auto; width: auto; display: none;
        text-wrap: nowrap; }
    """

    choices: reactive[tuple[CompletionView, ...]] = reactive((), layout=True)
    cursor: reactive[int] = reactive(0)

    @property
    def open(self) -> bool:
        """True while there is something to choose from."""
        return self.display

    def show(self, choices: tuple[CompletionView, ...], above: Widget) -> None:
        """Offer ``choices`` above the widget ``above``; without any, close the list."""
        self.choices = choices
        self.cursor = 0
        self.display = bool(choices)
        if choices:
            rows = min(len(choices), _ROWS) + self.gutter.height
            region = above.region
            below = region.y < rows
            self.absolute_offset = Offset(region.x, region.bottom if below else region.y - rows)

    def close(self) -> None:
        """Close the list."""
        self.display = False
        self.choices = ()

    def move(self, step: int) -> None:
        """Move the highlight, around the ends."""
        if self.choices:
            self.cursor = (self.cursor + step) % len(self.choices)

    @property
    def chosen(self) -> CompletionView | None:
        """The highlighted choice."""
        return self.choices[self.cursor] if self.choices else None

    def get_content_width(self, container: Size, viewport: Size) -> int:
        widest = max((_row(each, 0).cell_length for each in self.choices), default=1)
        return max(1, min(widest + 2, _CELLS, viewport.width - self.gutter.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(1, min(len(self.choices), _ROWS))

    def render(self) -> Content:
        width = self.content_size.width
        first = max(0, min(self.cursor - _ROWS // 2, len(self.choices) - _ROWS))
        rows = []
        for place, choice in enumerate(self.choices[first : first + _ROWS], first):
            highlighted = place == self.cursor
            row = Content.assemble("▸ " if highlighted else "  ", _row(choice, width - 2))
            row = row.truncate(width, ellipsis=True, pad=True)
            rows.append(row.stylize(CURSOR) if highlighted else row)
        return Content("\n").join(rows)


def _row(choice: CompletionView, width: int) -> Content:
    text, hint = line(choice.text), line((choice.hint, DIM))
    if width and text.cell_length + hint.cell_length + 2 <= width:
        return spread(text, hint, width)
    return Content.assemble(text, "  ", hint) if choice.hint else text

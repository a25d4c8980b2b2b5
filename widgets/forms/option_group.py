"""The options of one question, one below the other: one of them, or several."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from widgets.text.clean import clean
from widgets.text.style_names import ACCENT, CURSOR, DIM, STRONG, line

_LEAST = 12


class OptionGroup(Widget, can_focus=True):
    """Draw options with their meaning; up and down move, space chooses, Enter chooses and goes on.

    Posts :class:`Entered` on Enter. With ``several``, space adds and removes.
    """

    DEFAULT_CSS = "OptionGroup { height: auto; width: 1fr; text-wrap: nowrap; }"
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("up,k", "move(-1)", "before", show=False),
        Binding("down,j", "move(1)", "next", show=False),
        Binding("space", "choose", "choose", show=False),
        Binding("enter", "enter", "choose and go on", show=False),
    ]

    @dataclass
    class Entered(Message):
        """The user pressed Enter."""

    def __init__(self, options: tuple[tuple[str, str], ...], *, several: bool) -> None:
        super().__init__()
        self._options, self._several = options, several
        self._cursor = 0
        self._picked: tuple[int, ...] = ()

    @property
    def picked(self) -> tuple[int, ...]:
        """The places of the chosen options, in their order."""
        return tuple(sorted(self._picked))

    def choose(self, place: int) -> None:
        """Choose an option, or take it back where several may be chosen."""
        if not self._several:
            self._picked = (place,)
        elif place in self._picked:
            self._picked = tuple(each for each in self._picked if each != place)
        else:
            self._picked = (*self._picked, place)
        self.refresh()

    def clear(self) -> None:
        """Choose none."""
        self._picked = ()
        self.refresh()

    def action_move(self, step: int) -> None:
        """Move the cursor; past the end, to the next field."""
        place = self._cursor + step
        if 0 <= place < len(self._options):
            self._cursor = place
            self.refresh()
        elif step > 0:
            self.screen.focus_next()
        else:
            self.screen.focus_previous()

    def action_choose(self) -> None:
        """Choose the option under the cursor."""
        self.choose(self._cursor)

    def action_enter(self) -> None:
        """Choose the option under the cursor where one may be chosen, and go on."""
        if not self._several:
            self.choose(self._cursor)
        self.post_message(self.Entered())

    def on_focus(self) -> None:
        """Show the cursor."""
        self.refresh()

    def on_blur(self) -> None:
        """Hide the cursor."""
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(1, len(self._rows(width)))

    def render(self) -> Content:
        return Content("\n").join(self._rows(self.content_size.width))

    def _rows(self, width: int) -> list[Content]:
        rows: list[Content] = []
        for place, (label, text) in enumerate(self._options):
            signs = "☑☐" if self._several else "●○"
            is_picked, is_current = place in self._picked, self.has_focus and place == self._cursor
            sign = line((signs[0] if is_picked else signs[1], ACCENT if is_picked else DIM), " ")
            words = line(
                (clean(label, newlines=False), STRONG),
                (f"  {clean(text, newlines=False)}" if text else "", DIM),
            )
            for number, piece in enumerate(words.wrap(max(_LEAST, width - 2)) or [Content("")]):
                row = Content.assemble(sign if number == 0 else "  ", piece)
                if is_current:
                    row = row.pad_right(max(0, width - row.cell_length)).stylize(CURSOR)
                rows.append(row)
        return rows

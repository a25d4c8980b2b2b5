"""A list to pick from, with a filter: sessions, themes, epics, stories."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from widgets.text.clean import clean
from widgets.text.style_names import DIM, line, spread

PickRow = tuple[str, str, str]
"""One choice: its key, the text to read, a dim hint at the right."""


class PickList(Vertical):
    """A titled list that filters while the user types.

    Every typed word must occur in the text or hint of a row, in any order and case. Enter posts
    :class:`Picked`, Escape :class:`Dismissed`, and each move :class:`Moved`. ``first`` is the key of the
    row that is highlighted at the beginning. With ``own``, which says what may be typed, the text itself
    is the last row.
    """

    DEFAULT_CSS = """
    PickList { height: auto; width: 1fr; max-width: 100; padding: 0 1; }
    PickList > Input { border: none; height: 1; padding: 0; background: transparent; }
    PickList > Input:focus { border: none; }
    PickList > OptionList { height: auto; max-height: 16; border: none; padding: 0;
        background: transparent; }
    PickList > OptionList:focus { border: none; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("escape", "dismiss_list", "close", show=False),
        Binding("down,ctrl+n", "move(1)", "next", show=False, priority=True),
        Binding("up,ctrl+p", "move(-1)", "previous", show=False, priority=True),
    ]

    @dataclass
    class Picked(Message):
        """The user picked the row with this key."""

        key: str

    @dataclass
    class Moved(Message):
        """The row with this key is highlighted now."""

        key: str

    @dataclass
    class Dismissed(Message):
        """The user left without picking."""

    def __init__(
        self,
        title: str,
        rows: Iterable[PickRow],
        *,
        empty: str = "Nothing to pick.",
        first: str = "",
        own: str = "",
        typed: str = "",
        id: str | None = None,  # noqa: A002 -- Textual's name for it
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._title = title
        self._rows = tuple(rows)
        self._shown: tuple[PickRow, ...] = ()
        self._empty = empty
        self._first = first
        self._own = own
        self._typed = typed

    def compose(self) -> ComposeResult:
        hint = f"type to filter, or {self._own}" if self._own else "type to filter"
        yield Input(self._typed, placeholder=hint, select_on_focus=False)
        yield OptionList(markup=False)
        yield Static(id="pick-empty")

    def on_mount(self) -> None:
        self.border_title = Content(clean(self._title, newlines=False) or " ")
        self._filter(self._typed)
        self.query_one(Input).focus()

    def show(self, rows: Iterable[PickRow]) -> None:
        """Replace the rows; the filter stays."""
        self._rows = tuple(rows)
        self._filter(self.query_one(Input).value)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Apply the typed filter."""
        event.stop()
        self._filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Choose the highlighted row."""
        event.stop()
        place = self.query_one(OptionList).highlighted
        if self._shown and place is not None and place < len(self._shown):
            self.post_message(self.Picked(self._shown[place][0]))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Say which row is highlighted."""
        event.stop()
        if event.option_index < len(self._shown):
            self.post_message(self.Moved(self._shown[event.option_index][0]))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose the row that was clicked."""
        event.stop()
        self.post_message(self.Picked(self._shown[event.option_index][0]))

    def on_resize(self, event: events.Resize) -> None:
        """Lay out the rows for the new width."""
        del event
        self._filter(self.query_one(Input).value)

    def action_move(self, step: int) -> None:
        """Move the highlight while the cursor stays in the filter."""
        options = self.query_one(OptionList)
        if self._shown:
            place = options.highlighted or 0
            options.highlighted = max(0, min(place + step, len(self._shown) - 1))

    def action_dismiss_list(self) -> None:
        """Leave without choosing."""
        self.post_message(self.Dismissed())

    def _filter(self, typed: str) -> None:
        words = typed.casefold().split()
        self._shown = tuple(
            row
            for row in self._rows
            if all(word in f"{row[1]} {row[2]}".casefold() for word in words)
        )
        own = typed.strip()
        if self._own and own and own not in [row[0] for row in self._shown]:
            self._shown = (*self._shown, (own, own, "as typed"))
        options = self.query_one(OptionList)
        width = max(8, (options.content_size.width or self.content_size.width) - 2)
        options.clear_options()
        options.add_options(Option(_row(row, width)) for row in self._shown)
        options.display = bool(self._shown)
        if self._shown:
            keys = [row[0] for row in self._shown]
            options.highlighted = keys.index(self._first) if self._first in keys else 0
        message = self._empty if not self._rows else "No row matches. Delete text to see more."
        note = self.query_one("#pick-empty", Static)
        note.update(line((message, DIM)))
        note.display = not self._shown


def mark_current(rows: Iterable[PickRow], current: str) -> list[PickRow]:
    """Say ``now`` in the hint of the row with the key ``current``."""
    return [
        (key, text, " · ".join(filter(None, ("now", hint))) if key == current else hint)
        for key, text, hint in rows
    ]


def _row(row: PickRow, width: int) -> Content:
    text, hint = line(row[1]), line((row[2], DIM))
    if not row[2] or hint.cell_length > width // 2:
        return Content.assemble(text, "  ", hint).truncate(width, ellipsis=True)
    return spread(text, hint, width)

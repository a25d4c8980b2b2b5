"""Small dialogs: a question with one line of answer, and a list to pick from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from rich.console import RenderableType
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from cockpit.app.actions.action import find_key
from widgets.forms.pick_list import PickList, PickRow
from widgets.frame.dimmed_screen import dim_quickly
from widgets.frame.footer import KeyBar
from widgets.text.clean import clean

T = TypeVar("T")


def without_blinking(field: Input) -> Input:
    """Stop the cursor of a field from blinking: nothing on this screen blinks."""
    field.cursor_blink = False
    return field


class Dialog(ModalScreen[T]):
    """A screen above the cockpit that Escape closes without an answer.

    The keys in the lower border of its box can be clicked.
    """

    BINDINGS = [Binding("escape", "leave", "close", show=False)]  # noqa: RUF012 -- Textual's way

    def render(self) -> RenderableType:
        """Draw the screen below, dimmed."""
        dimmed: RenderableType = dim_quickly(super().render())
        return dimmed

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    def on_click(self, event: events.Click) -> None:
        """Press the key whose hint was clicked in a lower border."""
        box = event.widget
        if box is None or event.screen_y != box.region.bottom - 1 or not box.border_subtitle:
            return
        drawn = self.screen._compositor.render_strips()[event.screen_y].text
        before, after = drawn[: event.screen_x], drawn[event.screen_x :]
        hint = before.rpartition("·")[2] + after.partition("·")[0]
        if key := find_key(hint.strip("─━╰└ ").partition(" ")[0]):
            event.stop()
            self.post_message(KeyBar.Pressed(key))


class Ask(Dialog[str]):
    """One question, one line of answer. Enter gives the answer, also an empty one."""

    def __init__(self, title: str, question: str, *, value: str = "") -> None:
        super().__init__()
        self._title, self._question, self._value = title, question, value

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content(clean(self._title, newlines=False))
            box.border_subtitle = Content("⏎ done · esc back")
            yield Static(Content(clean(self._question)), classes="words")
            yield without_blinking(Input(self._value, select_on_focus=False))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer."""
        event.stop()
        self.dismiss(event.value.strip())


class Warn(Dialog[None]):
    """A warning that stays until the user closes it with Enter or Escape."""

    BINDINGS = [Binding("enter", "leave", "close", show=False)]  # noqa: RUF012 -- Textual's way

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content(f"⚠ {clean(self._title, newlines=False)}")
            box.border_subtitle = Content("⏎ esc close")
            yield Static(Content(clean(self._text)), classes="words")


class PickOne(Dialog[str]):
    """A list; the answer is the key of the picked row."""

    def __init__(
        self,
        title: str,
        rows: Iterable[PickRow],
        *,
        empty: str = "Nothing to pick. esc goes back.",
        first: str = "",
        own: str = "",
        typed: str = "",
    ) -> None:
        super().__init__()
        self._list = PickList(
            title, rows, empty=empty, first=first, own=own, typed=typed, classes="box"
        )

    def compose(self) -> ComposeResult:
        yield self._list

    def on_mount(self) -> None:
        without_blinking(self._list.query_one(Input))

    def on_pick_list_picked(self, event: PickList.Picked) -> None:
        """Answer."""
        self.dismiss(event.key)

    def on_pick_list_dismissed(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

"""A form: labelled fields one below the other, filled in with the keyboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from widgets.forms.picking_input import PickingInput
from widgets.text.clean import clean
from widgets.text.style_names import CURSOR, DIM, STRONG, Part, line
from widgets.views import CompletionView


class FieldView(msgspec.Struct, frozen=True):
    """One field of a form: a ``line``, a ``text`` of many lines, or one of ``choices``."""

    name: str
    label: str
    value: str = ""
    kind: Literal["line", "text", "choice"] = "line"
    hint: str = ""
    choices: tuple[str, ...] = ()
    options: tuple[CompletionView, ...] = ()
    """What a line is likely to name: offered while it is typed."""
    several: bool = False
    """Whether a line names several options, with commas between."""


class FormView(msgspec.Struct, frozen=True):
    """A form: a title and its fields, the first one first."""

    title: str
    fields: tuple[FieldView, ...]


class Choice(Widget, can_focus=True):
    """One of a few values; left and right change it."""

    DEFAULT_CSS = "Choice { height: 1; width: 1fr; text-wrap: nowrap; }"
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("left,h", "turn(-1)", "before", show=False),
        Binding("right,l,space", "turn(1)", "next", show=False),
    ]

    value: reactive[str] = reactive("")

    def __init__(self, choices: tuple[str, ...], value: str) -> None:
        super().__init__()
        self._choices = choices if value in choices or not value else (value, *choices)
        self.set_reactive(Choice.value, value or (choices[0] if choices else ""))

    def action_turn(self, step: int) -> None:
        """Choose the next or the previous value."""
        if self._choices:
            listed = self.value in self._choices
            place = self._choices.index(self.value) if listed else -max(step, 0)
            self.value = self._choices[(place + step) % len(self._choices)]

    def on_focus(self) -> None:
        """Mark the chosen value."""
        self.refresh()

    def on_blur(self) -> None:
        """Unmark the chosen value."""
        self.refresh()

    def render(self) -> Content:
        parts: list[Part] = []
        for each in self._choices:
            chosen = each == self.value
            parts += [(f"{'●' if chosen else '○'} {each}", self._style(chosen)), "  "]
        all_choices = line(*parts)
        if all_choices.cell_length <= self.content_size.width:
            return all_choices
        number = self._choices.index(self.value) + 1 if self.value in self._choices else 0
        return line(
            ("‹ ", DIM), (self.value, self._style(True)), (" ›", DIM),
            (f"  {number} of {len(self._choices)}", DIM),
        )  # fmt: skip

    def _style(self, chosen: bool) -> str:
        if not chosen:
            return DIM
        return f"{STRONG} {CURSOR}" if self.has_focus else STRONG


class Form(VerticalScroll, can_focus=False):
    """Draw a :class:`FormView`. Tab goes from field to field, Enter to the next field.

    Loaded and pasted text is cleaned. :attr:`changed` has only the fields that the user changed, so
    that untouched fields keep their bytes.
    """

    DEFAULT_CSS = """
    Form { height: auto; width: 1fr; padding: 0; }
    Form .label { height: 1; width: 14; text-wrap: nowrap; text-overflow: ellipsis; }
    Form > .row { height: 1; width: 1fr; }
    Form > .row.-text { height: auto; margin: 1 0 0 0; }
    Form Input, Form Choice { width: 1fr; height: 1; border: none; padding: 0; }
    Form Input:focus { border: none; }
    Form TextArea { width: 1fr; height: auto; min-height: 3; max-height: 12; border: none;
        padding: 0 1; }
    Form TextArea:focus { border: none; }
    """

    @dataclass
    class Changed(Message):
        """The user changed a field."""

    def __init__(self, view: FormView) -> None:
        super().__init__()
        self.view = view
        self._fields: dict[str, Widget] = {}
        self._first: Mapping[str, str] = {}

    def compose(self) -> ComposeResult:
        self._fields = {each.name: _widget(each) for each in self.view.fields}
        self._first = self.values
        for each in self.view.fields:
            with Horizontal(classes="row -text" if each.kind == "text" else "row"):
                yield Static(line((each.label, DIM)), classes="label")
                yield self._fields[each.name]

    def on_mount(self) -> None:
        for widget in self._fields.values():
            widget.focus()
            break

    @property
    def values(self) -> Mapping[str, str]:
        """The value of every field."""
        return {name: _value(widget) for name, widget in self._fields.items()}

    @property
    def changed(self) -> Mapping[str, str]:
        """The fields whose value differs from the first one."""
        return {name: text for name, text in self.values.items() if text != self._first[name]}

    def fill(self, values: Mapping[str, str]) -> None:
        """Put values into fields, as if typed; ignore names without a field."""
        for name, text in values.items():
            widget = self._fields.get(name)
            if isinstance(widget, TextArea):
                widget.load_text(clean(text))
            elif isinstance(widget, Input | Choice):
                widget.value = clean(text, newlines=False)

    def turn_to(self, name: str) -> None:
        """Put the cursor into a field."""
        if name in self._fields:
            self._fields[name].focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Remove text that would act on the terminal."""
        event.stop()
        if (cleaned := clean(event.value, newlines=False)) != event.value:
            event.input.value = cleaned
        self.post_message(self.Changed())

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Remove text that would act on the terminal."""
        event.stop()
        text = event.text_area.text
        if (cleaned := clean(text)) != text:
            event.text_area.load_text(cleaned)
            event.text_area.move_cursor(event.text_area.document.end)
        self.post_message(self.Changed())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the next field."""
        event.stop()
        self.screen.focus_next()

    def on_key(self, event: events.Key) -> None:
        """Go to the next field on Enter in a choice, too."""
        if event.key == "enter" and isinstance(self.screen.focused, Choice):
            event.stop()
            self.screen.focus_next()


def _widget(field: FieldView) -> Widget:
    if field.kind == "choice":
        return Choice(
            tuple(clean(each, newlines=False) for each in field.choices),
            clean(field.value, newlines=False),
        )
    if field.kind == "text":
        area = TextArea(clean(field.value), soft_wrap=True, highlight_cursor_line=False)
        area.cursor_blink = False
        return area
    if field.options:
        return PickingInput(
            clean(field.value, newlines=False),
            clean(" · ".join(filter(None, (field.hint, "↓ lists them"))), newlines=False),
            field.options,
            several=field.several,
        )
    field_input = Input(
        clean(field.value, newlines=False),
        placeholder=clean(field.hint, newlines=False),
        select_on_focus=False,
    )
    field_input.cursor_blink = False
    return field_input


def _value(widget: Widget) -> str:
    if isinstance(widget, TextArea):
        return widget.text
    return widget.value if isinstance(widget, Input | Choice) else ""

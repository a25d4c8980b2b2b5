"""Dialogs over the screen: a question with one line of answer, a list to pick from, a glance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from cockpit.app.actions.action import GROUPS, Action, spelled
from widgets.forms.pick_list import Pick, PickRow
from widgets.text.clean import clean
from widgets.text.tone import DIM, STRONG, line

T = TypeVar("T")
_KEY_CELLS = 16


def calm(field: Input) -> Input:
    """The field with a cursor that stands still: nothing on this screen blinks."""
    field.cursor_blink = False
    return field


class Dialog(ModalScreen[T]):
    """A screen above the cockpit that Escape leaves without an answer."""

    BINDINGS = [Binding("escape", "leave", "close", show=False)]  # noqa: RUF012 -- Textual's way

    def action_leave(self) -> None:
        """Leave without an answer."""
        self.dismiss(None)


class Ask(Dialog[str]):
    """One question, one line of answer. Enter gives it, also an empty one."""

    def __init__(self, title: str, words: str, *, value: str = "") -> None:
        super().__init__()
        self._title, self._words, self._value = title, words, value

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content(clean(self._title, newlines=False))
            box.border_subtitle = Content("⏎ done · esc back")
            yield Static(Content(clean(self._words)), classes="words")
            yield calm(Input(self._value, select_on_focus=False))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer."""
        event.stop()
        self.dismiss(event.value.strip())


class PickOne(Dialog[str]):
    """A list; answers the key of the chosen row."""

    def __init__(
        self, title: str, rows: Iterable[PickRow], *, empty: str = "Nothing here."
    ) -> None:
        super().__init__()
        self._pick = Pick(title, rows, empty=empty, classes="box")

    def compose(self) -> ComposeResult:
        yield self._pick

    def on_mount(self) -> None:
        calm(self._pick.query_one(Input))

    def on_pick_picked(self, event: Pick.Picked) -> None:
        """Answer."""
        self.dismiss(event.key)

    def on_pick_dismissed(self) -> None:
        """Leave."""
        self.dismiss(None)


class Help(Dialog[None]):
    """Every key and what it does, from the registry of actions."""

    BINDINGS = [Binding("f1,q,question_mark", "leave", "close", show=False)]  # noqa: RUF012

    def __init__(self, actions: Sequence[Action]) -> None:
        super().__init__()
        self._actions = actions

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help", classes="box") as box:
            box.border_title = Content("Keys")
            box.border_subtitle = Content("esc: back")
            yield HelpText(self._actions)


class HelpText(Static):
    """The text of the help screen: groups, keys in one column, what they do in the other."""

    def __init__(self, actions: Sequence[Action]) -> None:
        super().__init__()
        rows = [
            line("Enter approves, Escape discusses. A proposal can be decided once you have seen"),
            line("it for half a second; with words in the prompt, Enter only ever sends them."),
        ]
        for group in GROUPS:
            rows += [Content(""), line((group, STRONG))]
            rows += [_row(action) for action in actions if action.group == group]
        rows += [
            Content(""),
            line(("In the prompt", STRONG)),
            _pair("/", "a task: /review-pr 24 · a plan: /plan FILE"),
            _pair("@", "a file of the project"),
            _pair("up, down", "what you sent before"),
            Content(""),
            line(("In a pane", STRONG)),
            _pair("j k", "down and up"),
            _pair("y", "conversation: copy the block"),
            _pair("d", "proposals: diffs side by side or in one column"),
            _pair(
                "space", "proposals: keep or drop an item · work: a glance at the task or session"
            ),
            _pair("⏎", "work: follow the session, see the task, open the chain's tree"),
            _pair("h j k l", "board: from card to card, as the arrows do"),
        ]
        self._rows = rows

    def render(self) -> Content:
        return Content("\n").join(self._rows)


def _row(action: Action) -> Content:
    keys = action.key
    if action.keys and action.pane_keys:
        keys = f"{keys}  {spelled(action.pane_keys[0])}"
    return _pair(keys or "^p …", action.title)


def _pair(keys: str, words: str) -> Content:
    return Content.assemble(line((f"  {keys:<{_KEY_CELLS}}", STRONG)), line((words, DIM)))

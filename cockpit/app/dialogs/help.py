"""The help screen: every key and its action, from the registry of actions.

Specified in ``docs/reference/keys.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from cockpit.app.actions.action import GROUPS, AnyAction, key_name
from cockpit.app.dialogs.question import Dialog
from widgets.text.tone import DIM, STRONG, line

_KEY_CELLS = 16
_IN_PROMPT = (
    ("/", "complete a command: /review-pr 24, /plan FILE"),
    ("@", "complete a file of the project"),
    ("up, down", "recall messages you sent"),
)
_IN_PANES = (
    ("j k", "move down and up"),
    ("y", "conversation: copy the block"),
    ("d", "proposals: show diffs side by side or in one column"),
    ("space", "proposals: keep or drop an item · work: peek at the task or session"),
    ("⏎", "work: follow the session, show the task, or open the chain's tree"),
    ("h j k l", "board: move from card to card, as the arrows do"),
)


class Help(Dialog[str]):
    """The keys and the prompt's commands, each a name with a hint, over the screen.

    Its answer is the id of the action that was clicked.
    """

    BINDINGS = [Binding("f1,q,question_mark", "leave", "close", show=False)]  # noqa: RUF012

    def __init__(
        self, actions: Sequence[AnyAction], commands: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__()
        self._actions, self._commands = actions, commands

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help", classes="box") as box:
            box.border_title = Content("Keys")
            box.border_subtitle = Content("esc back")
            yield HelpText(self._actions, self._commands)

    def on_help_text_picked(self, event: HelpText.Picked) -> None:
        """Answer with the action that was clicked."""
        self.dismiss(event.action_id)


class HelpText(Static):
    """The text of the help screen: groups of actions, with keys in one column and titles in the other."""

    @dataclass
    class Picked(Message):
        """The user clicked an action."""

        action_id: str

    def __init__(
        self, actions: Sequence[AnyAction], commands: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__()
        rows = [
            line("Enter approves, Escape discusses. Keys work once you have seen the proposal"),
            line("for half a second. With text in the prompt, Enter only sends the text."),
        ]
        self._ids: dict[int, str] = {}
        for group in GROUPS:
            rows += [Content(""), line((group, STRONG))]
            for action in actions:
                if action.group == group:
                    self._ids[len(rows)] = action.id
                    rows.append(_action_row(action))
        for title, pairs in (
            ("In the prompt", _IN_PROMPT),
            ("Commands of the prompt", sorted(commands)),
            ("In a pane", _IN_PANES),
        ):
            rows += [Content(""), line((title, STRONG)), *(_row(*pair) for pair in pairs)]
        self._rows = rows

    def render(self) -> Content:
        return Content("\n").join(self._rows)

    def on_click(self, event: events.Click) -> None:
        """Report the action under the mouse."""
        width, below = self.content_size.width, event.y
        for place, row in enumerate(self._rows):
            below -= max(1, len(row.wrap(width)))
            if below < 0:
                if place in self._ids:
                    self.post_message(self.Picked(self._ids[place]))
                return


def _action_row(action: AnyAction) -> Content:
    keys = action.key
    if action.keys and action.pane_keys:
        keys = f"{keys}  {key_name(action.pane_keys[0])}"
    return _row(keys or "^p …", action.title)


def _row(keys: str, text: str) -> Content:
    return Content.assemble(line((f"  {keys:<{_KEY_CELLS}}", STRONG)), line((text, DIM)))

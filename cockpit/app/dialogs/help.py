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
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from cockpit.app.actions.action import GROUPS, AnyAction, key_name
from cockpit.app.dialogs.small_dialogs import Dialog
from widgets.text.style_names import DIM, STRONG, line
from widgets.text.wrapped import wrap_line

_Entry = tuple[Content, str]
"""A row, and the id of its action, or nothing."""
_KEY_CELLS = 16
_COLUMN_LEAST = 66
_GAP = 2
_INTRO = (
    "Enter approves, Escape discusses. Keys work once you have seen the proposal for half a second. "
    "With text in the prompt, Enter only sends the text."
)
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


class HelpText(Widget):
    """The text of the help screen: groups of actions, with keys in one column and titles in the other.

    Groups stand below each other, on wide screens in several columns; a long title goes on below its own
    beginning.
    """

    DEFAULT_CSS = "HelpText { height: auto; width: 1fr; text-wrap: nowrap; }"

    @dataclass
    class Picked(Message):
        """The user clicked an action."""

        action_id: str

    def __init__(
        self, actions: Sequence[AnyAction], commands: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__()
        self._groups: list[tuple[str, list[_Entry]]] = [
            (group, [_action_entry(action) for action in actions if action.group == group])
            for group in GROUPS
        ]
        for title, pairs in (
            ("In the prompt", _IN_PROMPT),
            ("Commands of the prompt", sorted(commands)),
            ("In a pane", _IN_PANES),
        ):
            self._groups.append((title, [(_row(*pair), "") for pair in pairs]))
        self._drawn: tuple[int, list[Content], list[list[tuple[Content, str]]]] = (0, [], [])

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        head, columns = self._lay_out(width)
        return len(head) + max(len(column) for column in columns)

    def render(self) -> Content:
        width = self.content_size.width or _COLUMN_LEAST
        head, columns = self._lay_out(width)
        cells = width // len(columns)
        rows = []
        for y in range(max(len(column) for column in columns)):
            parts = [column[y][0] if y < len(column) else Content("") for column in columns]
            padded = [part.pad_right(max(0, cells - part.cell_length)) for part in parts[:-1]]
            rows.append(Content.assemble(*padded, parts[-1]))
        return Content("\n").join([*head, *rows])

    def on_click(self, event: events.Click) -> None:
        """Report the action under the mouse."""
        width = max(1, self.content_size.width)
        head, columns = self._lay_out(width)
        column = columns[min(event.x // (width // len(columns)), len(columns) - 1)]
        place = event.y - len(head)
        if 0 <= place < len(column) and column[place][1]:
            self.post_message(self.Picked(column[place][1]))

    def _lay_out(self, width: int) -> tuple[list[Content], list[list[tuple[Content, str]]]]:
        """Return the lines above the columns, and the lines of each with the ids of their actions."""
        width = max(1, width)
        if self._drawn[0] != width:
            count = max(1, width // _COLUMN_LEAST)
            room = width // count - (_GAP if count > 1 else 0)
            blocks = []
            for title, entries in self._groups:
                lines = [(Content(""), ""), (line((title, STRONG)), "")]
                for text, action_id in entries:
                    pieces = wrap_line(text, max(1, room), hang=_KEY_CELLS + 2)
                    lines += [(piece, action_id) for piece in pieces]
                blocks.append(lines)
            head = line(_INTRO).wrap(max(1, width))
            self._drawn = (width, head, _balance(blocks, count))
        return self._drawn[1], self._drawn[2]


def _balance(
    blocks: list[list[tuple[Content, str]]], count: int
) -> list[list[tuple[Content, str]]]:
    """Share blocks over at most ``count`` columns, in order, so that the highest column is low."""
    high = max(len(block) for block in blocks)
    while True:
        columns: list[list[tuple[Content, str]]] = [[]]
        for block in blocks:
            if columns[-1] and len(columns[-1]) + len(block) > high:
                columns.append([])
            columns[-1] += block
        if len(columns) <= count:
            return columns
        high += 1


def _action_entry(action: AnyAction) -> _Entry:
    keys = action.key
    if action.keys and action.pane_keys:
        keys = f"{keys}  {key_name(action.pane_keys[0])}"
    return _row(keys or "^p …", action.title), action.id


def _row(keys: str, text: str) -> Content:
    return Content.assemble(line((f"  {keys:<{_KEY_CELLS}}", STRONG)), line((text, DIM)))

"""The keys that work on the screen below, at its bottom: the next key is pressed there.

Specified in ``docs/reference/screen.md``, keys that work here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, TextArea

from cockpit.app.actions.action import GROUPS, AnyAction, key_name
from cockpit.app.actions.screen_actions import ActionScreen
from cockpit.app.dialogs.small_dialogs import Dialog
from widgets.frame.key_menu import KeyGroup, KeyMenu
from widgets.views import KeyHintView

if TYPE_CHECKING:
    from cockpit.app.terminal.terminal_app import TerminalApp

HELP = "question_mark"
"""The key that goes on to the help screen."""
_SHARE = 0.6
"""How much of the screen the menu may take, of its height."""
_FRAME = 2
_SCROLLS = ("up", "down", "pageup", "pagedown", "home", "end")


class KeyMenuDialog(Dialog[str]):
    """A menu at the bottom; its answer is the key that was pressed or clicked, None for Escape.

    ``has_help``: the screen below has a page of all keys.
    """

    def __init__(
        self, full: Sequence[KeyGroup], short: Sequence[KeyGroup], *, has_help: bool = True
    ) -> None:
        super().__init__()
        self._has_help = has_help
        self._groups = full, short

    def compose(self) -> ComposeResult:
        most = max(1, int(self.app.size.height * _SHARE) - _FRAME)
        with VerticalScroll(id="keys", classes="box") as box:
            box.border_title = Content("Keys that work here")
            help_key = "? all keys · " if self._has_help else ""
            box.border_subtitle = Content(f"the next key does it · {help_key}esc back")
            yield KeyMenu(*self._groups, most)

    def on_mount(self) -> None:
        self.query_one("#keys").focus()

    def on_key(self, event: events.Key) -> None:
        """Answer with any key but those that scroll a menu which is taller than its place."""
        box = self.query_one("#keys", VerticalScroll)
        if event.key == "escape" or (event.key in _SCROLLS and box.max_scroll_y):
            return
        event.stop()
        event.prevent_default()
        self.dismiss(event.key)

    def on_key_menu_picked(self, event: KeyMenu.Picked) -> None:
        """Answer with the key that was clicked."""
        self.dismiss(event.key)

    def on_click(self, event: events.Click) -> None:
        """Close on a click beside the menu."""
        if event.widget is self:
            self.dismiss(None)


def offer_footer(app: TerminalApp[Any], hints: Sequence[KeyHintView]) -> None:
    """Show all ``hints`` of a footer without room for them; the next key is pressed on the screen below."""

    def press(key: str | None) -> None:
        if key:
            app.press_key(key)

    groups = [("Keys", hints)]
    app.push_screen(KeyMenuDialog(groups, groups, has_help=False), press)


def list_keys(screen: Screen[object]) -> tuple[list[KeyGroup], list[KeyGroup]]:
    """Return the keys that work on ``screen`` now, in groups: with whole phrases, and with short labels."""
    full = _group(screen, lambda action: action.title)
    return full, _group(screen, lambda action: action.label)


def _group(screen: Screen[object], name: Callable[[AnyAction], str]) -> list[KeyGroup]:
    pairs = list(screen.pressable()) if isinstance(screen, ActionScreen) else []
    pairs.sort(key=lambda pair: GROUPS.index(pair[1].group))
    groups: list[KeyGroup] = []
    for group, some in groupby(pairs, key=lambda pair: pair[1].group):
        hints = [KeyHintView(key_name(key), name(action), press=key) for key, action in some]
        groups.append((group, hints))
    if own := list(_list_own_keys(screen, {key for key, _ in pairs})):
        groups.append(("Move", own))
    return groups


def _list_own_keys(screen: Screen[object], taken: set[str]) -> Iterator[KeyHintView]:
    """Yield the keys of the focused widget itself: to move, to fold. A field's are those of any editor."""
    focused = screen.focused
    if focused is None or isinstance(focused, TextArea | Input):
        return
    seen: set[str] = set()
    for key, active in screen.active_bindings.items():
        binding = active.binding
        is_own = active.node is focused and bool(binding.description) and key not in taken
        if is_own and binding.action not in seen:
            seen.add(binding.action)
            yield KeyHintView(key_name(key), binding.description.lower(), press=key)

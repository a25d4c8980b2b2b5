"""The record of an action: its title, keys, condition and function, and the context that conditions read.

Specified in ``docs/reference/keys.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar, get_args

from msgspec import Struct

from cockpit.app.actions.context import ActionContext, Pane
from widgets.views import KeyHintView

HostT = TypeVar("HostT")
Group = Literal["Decide", "Say", "Session", "Look", "Lists", "Chains", "Tasks", "Program"]
GROUPS: tuple[Group, ...] = get_args(Group)
"""The sections of the help screen, in order."""

Condition = Callable[[ActionContext], bool]


def always(_: ActionContext) -> bool:
    """Return True: the condition of an action that is always valid."""
    return True


class Action(Struct, Generic[HostT], frozen=True):
    """One thing that the user can do. Bindings, footer, palette, help and ``[keys]`` read these fields."""

    id: str
    """The name under ``[keys]`` in the configuration."""
    group: Group
    title: str
    """A phrase that starts with a verb, for the palette and the help screen."""
    label: str
    """One or two words for the footer."""
    keys: tuple[str, ...] = ()
    """Keys that work wherever the focus is; the user's ``[keys]`` replace these."""
    pane_keys: tuple[str, ...] = ()
    """Plain letters that work only while ``pane`` has the focus."""
    pane: Pane = ""
    when: Condition = always
    """Whether the action is valid now. The key of an invalid action goes on to the focused widget."""
    needs: str = ""
    """``when`` as a phrase, for the documentation of keys."""
    run: Callable[[HostT], None] | None = None
    """What the action does; None when a widget handles the key itself and the key cannot change."""
    footer: int = 0
    """Rank in the footer, 1 first; 0 keeps the action out of it."""
    footer_when: Condition = always
    """A further condition for the footer only."""
    palette: bool = True
    """Whether the command palette lists the action."""
    command: str = ""
    """The command that does it in the prompt, without its slash; empty without one."""
    synonyms: str = ""
    """Further words by which the palette finds the action."""

    @property
    def is_bound(self) -> bool:
        """True when the screen binds the keys of the action, and the user may change them."""
        return self.run is not None

    @property
    def key(self) -> str:
        """The key to show for the action, as people write it; empty without a key."""
        return key_name(self.press) if self.press else ""

    @property
    def press(self) -> str:
        """The same key as Textual names it."""
        keys = self.keys or self.pane_keys
        return keys[0] if keys else ""

    @property
    def hint(self) -> KeyHintView:
        """The key with what it does; a click presses it."""
        return KeyHintView(self.key, self.label, press=self.press)


AnyAction = Action[Any]
"""An action of any host, for code that reads actions and runs none."""

_KEY_NAMES = {
    "enter": "⏎",
    "escape": "esc",
    "tab": "⇥",
    "left": "←",
    "right": "→",
    "space": "␣",
    "shift+tab": "⇧⇥",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "question_mark": "?",
    "plus": "+",
    "minus": "−",
    "slash": "/",
    "comma": ",",
    "delete": "del",
    "underscore": "_",
}


_NAMED_KEYS = {name: key for key, name in _KEY_NAMES.items()}


def find_key(name: str) -> str:
    """Return the key of Textual that :func:`key_name` writes as ``name``; empty for any other word."""
    if name.startswith("^") and len(name) > 1:
        return f"ctrl+{_NAMED_KEYS.get(name[1:], name[1:])}"
    if name in _NAMED_KEYS:
        return _NAMED_KEYS[name]
    return name if len(name) == 1 and name.isalpha() else ""


def key_name(key: str) -> str:
    """Write a key of Textual as people do: ``ctrl+p`` is ``^p``."""
    if key in _KEY_NAMES:
        return _KEY_NAMES[key]
    modifiers, _, last = key.rpartition("+")
    last = _KEY_NAMES.get(last, last)
    return f"^{last}" if modifiers == "ctrl" else f"{modifiers}+{last}" if modifiers else last

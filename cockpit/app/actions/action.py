"""One thing that a person can do: what it is called, its keys, and when it is valid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Pane = Literal["prompt", "conversation", "bands", "proposals", "work", "tasks", ""]
"""Where keys go. ``tasks`` is wherever a task stands under the cursor: in the work pane, on the board,
in the queue, and over a task itself."""
Group = Literal["Decide", "Say", "Session", "Look", "Chains", "Tasks", "Program"]
GROUPS: tuple[Group, ...] = ("Decide", "Say", "Session", "Look", "Chains", "Tasks", "Program")


@dataclass(frozen=True, slots=True)
class Moment:
    """What the validity of an action depends on. ``kind`` is the kind of the proposal in front,
    empty without one; ``asking`` is True while a second key is awaited, ``listing`` while the
    prompt offers a list, which has the keys then; ``oriented`` once a wave has a packet. ``task`` is the
    status of the task under the cursor, empty without one; ``board`` while the board is open. ``chain``
    is the status of the chain whose tree the cursor is in; ``lively`` while a session can be followed
    from there, ``attached`` while there is a way back from the one that was."""

    pane: Pane = "prompt"
    empty: bool = True
    kind: str = ""
    armed: bool = False
    asking: bool = False
    discussing: bool = False
    narrowing: bool = False
    running: bool = False
    session: bool = False
    oriented: bool = False
    waiting: int = 0
    selection: bool = False
    listing: bool = False
    task: str = ""
    board: bool = False
    chain: str = ""
    lively: bool = False
    attached: bool = False


When = Callable[[Moment], bool]


def _always(_: Moment) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do. ``keys`` work everywhere, ``pane_keys`` (plain letters) only while ``pane``
    has the focus. ``bound`` False: a widget handles the key itself, it is only told of here.
    ``footer`` ranks it in the key bar (0: not there), where it stands while ``told`` holds too."""

    id: str
    group: Group
    title: str
    label: str
    keys: tuple[str, ...] = ()
    pane_keys: tuple[str, ...] = ()
    pane: Pane = ""
    when: When = _always
    footer: int = 0
    told: When = _always
    bound: bool = True
    palette: bool = True

    @property
    def key(self) -> str:
        """The key that is shown for it, as people write it; empty for one without a key."""
        every = self.keys or self.pane_keys
        return spelled(every[0]) if every else ""


_SPELLED = {
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
}


def spelled(key: str) -> str:
    """A key as people write it: ``ctrl+p`` is ``^p``."""
    if key in _SPELLED:
        return _SPELLED[key]
    head, _, last = key.rpartition("+")
    last = _SPELLED.get(last, last)
    return f"^{last}" if head == "ctrl" else f"{head}+{last}" if head else last

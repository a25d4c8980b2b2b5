"""The signs of states: one sign, word and colour for each state, on the screen and in the command line.

Every surface looks states up here, so that a state looks the same wherever it stands. The table is in
``docs/reference/screen.md``, signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Tone = Literal["dim", "good", "bad", "warn", "accent", "plain"]
Kind = Literal[
    "task", "session", "chain", "worker", "agent", "proposal", "offer", "check", "project"
]
"""What has a state. An ``offer`` is what the user approves once: a rule, note, tool or guard."""


class StateSign(msgspec.Struct, frozen=True):
    """How a state looks: one character, what it is called, and its colour."""

    sign: str
    word: str
    tone: Tone


_OPEN: tuple[str, Tone] = ("○", "plain")
_LATER: tuple[str, Tone] = ("◌", "dim")
_RUNNING: tuple[str, Tone] = ("▶", "warn")
_STOPPING: tuple[str, Tone] = ("◑", "warn")
_REVIEW: tuple[str, Tone] = ("◇", "accent")
_YOURS: tuple[str, Tone] = ("?", "accent")
_DONE: tuple[str, Tone] = ("✔", "good")
_BLOCKED: tuple[str, Tone] = ("■", "bad")
_FAILED: tuple[str, Tone] = ("✗", "bad")
_UNFINISHED: tuple[str, Tone] = ("!", "warn")
_STOPPED: tuple[str, Tone] = ("□", "dim")
_GONE: tuple[str, Tone] = ("·", "dim")
_OFFERED: tuple[str, Tone] = ("◇", "accent")
_HELD: tuple[str, Tone] = ("◆", "good")
_DOUBTED: tuple[str, Tone] = ("◇", "warn")

# By kind and state: how it looks, and what it is called where that is not the state's own name.
_TABLE: Mapping[Kind, Mapping[str, tuple[tuple[str, Tone], str]]] = {
    "task": {
        "todo": (_OPEN, "to do"),
        "later": (_LATER, "waits for other tasks"),
        "in_progress": (_RUNNING, "in progress"),
        "left": (_LATER, "left by a chain that ended"),
        "review": (_REVIEW, "review"),
        "blocked": (_BLOCKED, "blocked"),
        "done": (_DONE, "done"),
        "archived": (_GONE, "archived"),
    },
    "session": {
        "running": (_RUNNING, "running"),
        "waiting": (_YOURS, "waits"),
        "completed": (_DONE, "done"),
        "blocked": (_BLOCKED, "blocked"),
        "limit": (_UNFINISHED, "stopped at its limit"),
        "needs_answer": (_YOURS, "needs an answer"),
        "expired": (_UNFINISHED, "its proposal expired"),
        "paused": (_UNFINISHED, "paused: the machine has no room"),
        "failed": (_FAILED, "failed"),
        "stopped": (_STOPPED, "stopped"),
    },
    "chain": {
        "running": (_RUNNING, "running"),
        "draining": (_STOPPING, "draining"),
        "completed": (_DONE, "completed"),
        "unfinished": (_UNFINISHED, "ended, with tasks left"),
        "limited": (_UNFINISHED, "reached its limit"),
        "failed": (_FAILED, "failed"),
        "stopped": (_STOPPED, "stopped"),
    },
    "worker": {
        "running": (_RUNNING, "running"),
        "clean": (_DONE, "ended"),
        "crashed": (_FAILED, "died"),
        "stopped": (_STOPPED, "stopped"),
        "delayed": (_LATER, "starts again later"),
    },
    "agent": {"running": (_RUNNING, "running"), "ended": (_DONE, "ended")},
    "proposal": {
        "pending": (_YOURS, "waits for you"),
        "approved": (_DONE, "approved"),
        "rejected": (_FAILED, "rejected"),
        "discussed": (("…", "warn"), "discussed"),
        "edited": (("✎", "warn"), "edited"),
        "expired": (_UNFINISHED, "expired"),
    },
    "offer": {
        **dict.fromkeys(("offered", "proposed", "new"), (_OFFERED, "")),
        **dict.fromkeys(("active", "kept", "approved"), (_HELD, "")),
        **dict.fromkeys(("suspended", "changed"), (_DOUBTED, "")),
        **dict.fromkeys(("expired", "revoked", "forgotten", "gone", "off"), (_GONE, "")),
        "refused": (_FAILED, ""),
    },
    "check": {
        "ok": (_DONE, "works"),
        "missing": (("–", "dim"), "is missing"),
        "broken": (_FAILED, "does not work"),
    },
    "project": {
        "waiting": (("●", "accent"), "has something to decide"),
        "running": (_RUNNING, "running"),
        "open": (_OPEN, "nothing runs"),
        "empty": (_GONE, "nothing recorded yet"),
        "reading": (_GONE, "is being read"),
        "locked": (_STOPPING, "is locked"),
        "newer": (("↑", "warn"), "is of a newer cockpit"),
        "older": (("↓", "warn"), "is of an older cockpit"),
        "gone": (("✗", "dim"), "is gone"),
        "broken": (_FAILED, "is broken"),
    },
}


def state_sign(kind: Kind, state: str) -> StateSign:
    """Return how a state looks; a state that is not in the table has a dim dot and its own name."""
    (sign, tone), word = _TABLE[kind].get(state, (_GONE, ""))
    return StateSign(sign, word or state.replace("_", " "), tone)


def state_signs() -> Mapping[Kind, Mapping[str, StateSign]]:
    """Return the whole table, by kind and state."""
    return {kind: {each: state_sign(kind, each) for each in _TABLE[kind]} for kind in _TABLE}

"""Tell the user at another window that something waits: the terminal's title and its notes.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Mapping

from widgets.text.clean import clean

_MOST = 120
_ESCAPE = "\x1b"
_NOTES_777 = ("foot", "rxvt", "contour")
"""Terminals, by the start of TERM, that know notes as OSC 777."""
_NOTES_9 = ("iTerm.app", "WezTerm", "ghostty", "kitty")
"""Terminals, by TERM_PROGRAM or TERM, that know notes as OSC 9."""
_MARKS = ("KITTY_WINDOW_ID", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR", "ITERM_SESSION_ID")
"""Variables of terminals that know notes as OSC 9; tmux hands them on to what runs in it."""
_NO_TITLE = ("linux", "dumb", "")

SAVE_TITLE = "\x1b[22;2t"
RESTORE_TITLE = "\x1b[23;2t"


def has_title(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal has a title."""
    return environment.get("TERM", "") not in _NO_TITLE


def title_sequence(text: str) -> str:
    """Return what sets the terminal's title; foreign text in it cannot end it or start another."""
    return f"\x1b]2;{_line(text)}\x07"


def note_sequence(text: str, environment: Mapping[str, str]) -> str:
    """Return what shows a note of the terminal's; empty where it is not known to have them.

    tmux knows no notes: the sequence passes through it, where its ``allow-passthrough`` is on.
    """
    if environment.get("TMUX"):
        if not any(environment.get(name) for name in _MARKS):
            return ""
        note = f"\x1b]9;cockpit: {_line(text)}\x07"
        return f"\x1bPtmux;{note.replace(_ESCAPE, 2 * _ESCAPE)}\x1b\\"
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if term.startswith(_NOTES_777):
        return f"\x1b]777;notify;cockpit;{_line(text).replace(';', ',')}\x07"
    if program in _NOTES_9 or any(name in term for name in _NOTES_9):
        return f"\x1b]9;cockpit: {_line(text)}\x07"
    return ""


def _line(text: str) -> str:
    return clean(text, newlines=False)[:_MOST]

"""The terminal's title. Specified in ``docs/reference/screen.md``."""

from __future__ import annotations

from collections.abc import Mapping

from widgets.text.clean import clean

_MOST = 120
_NO_TITLE = ("linux", "dumb", "")

SAVE_TITLE = "\x1b[22;2t"
RESTORE_TITLE = "\x1b[23;2t"


def has_title(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal has a title."""
    return environment.get("TERM", "") not in _NO_TITLE


def title_sequence(text: str) -> str:
    """Return what sets the terminal's title; foreign text in it cannot end it or start another."""
    return f"\x1b]2;{clean(text, newlines=False)[:_MOST]}\x07"

"""What a screen and the server that shows it elsewhere say to each other, between the terminal's bytes.

The screen numbers what it draws, in marks that the server takes out of its output. Before keys the server
says which number had been on the user's terminal long enough as they were pressed. So the screen decides
about a key by what its user saw, however long the line took. See ``docs/reference/web.md``.
"""

from __future__ import annotations

import re

VARIABLE = "COCKPIT_FAR_TERMINAL"
"""Set for a screen whose terminal is a page of a browser."""
NO_GAP_MS = 10_000
"""Milliseconds between two keys; more are counted as so many."""

GIVE_BACK = (
    "\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1004l"
    "\x1b[?1049l\x1b[?25h\x1b[0m"
)
"""Leaves every mode of a terminal that a screen may have switched on, where it cannot end in order."""

ON, OFF = "on", "off"
"""The screen reads the server's words; another program has the terminal now."""
_PREFIX = b"\x1b_cockpit;"
_MARK = re.compile(rb"\x1b_cockpit;([a-z0-9]{1,20})\x1b\\")
_WORDS = re.compile(r"\x1b\[>(\d{1,15});(\d{1,5})y")
_MOST_HELD = 64


def mark(name: str) -> str:
    """Return the mark of a number, or of :data:`ON` or :data:`OFF`, for the output."""
    return f"\x1b_cockpit;{name}\x1b\\"


def pressed_words(number: int, gap_ms: int) -> str:
    """Return the words before keys: the last number that had settled, and the time since other keys."""
    return f"\x1b[>{number};{min(gap_ms, NO_GAP_MS)}y"


def without_words(keys: str) -> str:
    """Return keys without anything that would pass for the server's words."""
    while (less := _WORDS.sub("", keys)) != keys:
        keys = less
    return keys


class MarkFinder:
    """Takes the marks out of output that comes in pieces of any length."""

    def __init__(self) -> None:
        self._held = b""

    def take(self, output: bytes) -> list[tuple[bytes, str]]:
        """Return pairs of output and the mark behind it; the last mark is empty where none ends the output.

        The beginning of a mark is kept for the next piece.
        """
        data = self._held + output
        pairs: list[tuple[bytes, str]] = []
        start = 0
        for match in _MARK.finditer(data):
            pairs.append((data[start : match.start()], match[1].decode()))
            start = match.end()
        rest = data[start:]
        held = _count_begun(rest)
        self._held = rest[len(rest) - held :]
        if len(rest) > held:
            pairs.append((rest[: len(rest) - held], ""))
        return pairs


def _count_begun(data: bytes) -> int:
    """Return how many bytes at the end may be the beginning of a mark."""
    for size in range(min(len(data), _MOST_HELD), 0, -1):
        tail = data[-size:]
        if tail[:1] == b"\x1b" and (_PREFIX.startswith(tail) or _is_begun(tail)):
            return size
    return 0


def _is_begun(tail: bytes) -> bool:
    name, escape, _ = tail[len(_PREFIX) :].partition(b"\x1b")
    return (
        tail.startswith(_PREFIX)
        and (not name or name.isalnum())
        and len(name) <= 20
        and tail.endswith(_PREFIX + name + escape)
    )


class WordFinder:
    """Takes the server's words out of what a screen reads, in pieces of any length."""

    def __init__(self) -> None:
        self._held = ""

    def take(self, typed: str) -> list[tuple[str, tuple[int, int] | None]]:
        """Return what was typed, in parts: keys, and the number and gap before them.

        Keys without words before them belong to the last words.
        """
        data = self._held + typed
        parts: list[tuple[str, tuple[int, int] | None]] = []
        words: tuple[int, int] | None = None
        start = 0
        for match in _WORDS.finditer(data):
            if data[start : match.start()] or words:
                parts.append((data[start : match.start()], words))
            words = int(match[1]), int(match[2])
            start = match.end()
        rest = data[start:]
        begun = re.search(r"\x1b(?:\[(?:>[\d;]{0,22})?)?\Z", rest)
        self._held = begun[0] if begun else ""
        rest = rest[: len(rest) - len(self._held)]
        if rest or words:
            parts.append((rest, words))
        return parts

    def release(self) -> str:
        """Return an escape that was kept, once nothing has followed it: it was a key."""
        released, self._held = self._held, ""
        return released

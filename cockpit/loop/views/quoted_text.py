"""Foreign text behind a bar: no line of it begins where lines of cockpit's own do.

A terminal breaks a line that is too long for it, and the rest would begin at the left margin. So lines are
cut to its columns, and ``┆`` continues the line above.
"""

from __future__ import annotations

import re
from unicodedata import combining, east_asian_width

_BREAK = re.compile("[\n\u2028\u2029]")
_TAB = 4
_LEAST = 20
"""Columns that a line has at least."""


class BarredText:
    """Puts a bar before each line of a text that arrives in fragments.

    ``width`` is that of the terminal; 0 cuts no lines. ``indent`` stands before the bar.
    """

    def __init__(self, width: int = 0, *, indent: str = "") -> None:
        self._indent = indent
        self._room = max(_LEAST, width - len(indent) - 3) if width else 0
        self._columns = 0
        self._has_bar = False

    def feed(self, fragment: str) -> str:
        """Return what the fragment adds to the text."""
        parts = []
        for number, line in enumerate(_BREAK.split(fragment)):
            if number:
                parts.append("\n" if self._has_bar else f"{self._indent}│\n")
                self._columns, self._has_bar = 0, False
            if line:
                parts.append(self._add(line))
        return "".join(parts)

    def _add(self, line: str) -> str:
        start = "" if self._has_bar else f"{self._indent}│ "
        self._has_bar = True
        if not self._room:
            return start + line
        first, *rest = cut_columns(line, self._room, self._columns)
        last = rest[-1] if rest else first
        self._columns = count_columns(last) + (0 if rest else self._columns)
        return start + f"\n{self._indent}┆ ".join([first, *rest])


def bar_text(text: str, width: int = 0, *, indent: str = "") -> str:
    """Return a whole foreign text with a bar before each line."""
    return BarredText(width, indent=indent).feed(text)


def cut_columns(line: str, width: int, used: int = 0) -> list[str]:
    """Cut a line into pieces of at most ``width`` columns of a terminal, the first ``used`` less."""
    if line.isascii() and "\t" not in line:
        first = max(0, width - used)
        return [line[:first], *(line[at : at + width] for at in range(first, len(line), width))]
    pieces, piece, columns = [], "", used
    for character in line:
        wide = count_columns(character)
        if columns + wide > width:
            pieces.append(piece)
            piece, columns = "", 0
        piece, columns = piece + character, columns + wide
    return [*pieces, piece]


def count_columns(text: str) -> int:
    """Count the columns of a terminal that a text takes; a tab is drawn as four spaces."""
    tabs = text.count("\t") * (_TAB - 1)
    if text.isascii():
        return len(text) + tabs
    return tabs + sum(
        0 if combining(character) else 1 + (east_asian_width(character) in "WF")
        for character in text
    )

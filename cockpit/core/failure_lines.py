"""The lines of an output that say what failed, kept where the whole output has no room.

A long output loses its middle, and a failure is often there: its lines stay. See
``docs/reference/kernel.md``, facts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from cockpit.core.secrets import mask
from cockpit.core.text import pluralize

T = TypeVar("T")

MOST_LINES = 14
"""Lines that are kept: the first half of them say why, the last sum up."""
LINE_CHARS = 160
"""Characters of such a line that are kept."""

_FAILURE = re.compile(
    r"\b(?:FAIL(?:ED|URES?|ING)?|ERRORS?|[A-Za-z]*(?:Error|Exception)|[Ff]ail(?:ed|ure|ing)|error"
    r"|panic(?:ked)?|assert(?:ion)?|Traceback|expected|not ok|refused|denied|cannot|fatal|not found"
    r"|No such file|not permitted|undefined)\b|ERR!|^E  |✖|✗|●"
)
_SIGNS = re.compile(
    r"FAIL|ERROR|Error|Exception|[Ff]ail|error|panic|assert|Traceback|expected|not ok|refused|denied"
    r"|cannot|fatal|not found|No such file|not permitted|undefined|ERR!|^E  |✖|✗|●",
    re.MULTILINE,
)
"""Finds every place that a failure line has, and more, without trying each letter of a long text."""
_PART = 32_768
"""Characters that are searched in one go: between two parts, another thread may run."""


def find_failure_lines(lines: Sequence[str]) -> list[int]:
    """Return the places of the lines that say what failed, at most :data:`MOST_LINES`."""
    return _first_and_last([at for at, line in enumerate(lines) if _FAILURE.search(line)])


def pick_failure_lines(text: str) -> list[str]:
    """Return the lines of ``text`` that say what failed: masked, shortened, at most :data:`MOST_LINES`."""
    lines: list[str] = []
    at = 0
    while at < len(text):
        cut = text.find("\n", at + _PART) + 1 or len(text)
        lines += _lines_with_signs(text[at:cut])
        at = cut
    # Masked whole: half of a secret is not recognised.
    return [shorten_line(mask(line.rstrip())) for line in _first_and_last(lines)]


def clip_middle(text: str, limit: int) -> str:
    """Return ``text``, the middle of a longer one cut out but for the lines that say what failed."""
    if len(text) <= limit:
        return text
    half = limit // 2
    note = f"[… {pluralize(len(text) - limit, 'character')} left out …]"
    kept = pick_failure_lines(text[half:-half])
    return "\n".join([text[:half], note, *kept, *([note] if kept else []), text[-half:]])


def clip_start(text: str, limit: int, *, before: str = "") -> str:
    """Return the last lines of ``text``, and in front of them the lines that say what failed.

    Those are of the rest of ``text``, and of what came ``before`` it.
    """
    if len(text) <= limit and not before:
        return text
    begin = text.find("\n", -limit) + 1 if len(text) > limit else 0
    if len(text) > limit and not 0 < begin < len(text):
        begin = len(text) - limit
    kept = pick_failure_lines(before + text[:begin])
    return "\n".join(["…", *kept, *(["…"] if kept else []), text[begin:]])


def shorten_line(line: str) -> str:
    """Return ``line``, cut to :data:`LINE_CHARS` characters."""
    return line if len(line) <= LINE_CHARS else f"{line[: LINE_CHARS - 1]}…"


def _lines_with_signs(text: str) -> list[str]:
    lines: list[str] = []
    end = -1
    for sign in _SIGNS.finditer(text):
        if sign.start() <= end:
            continue
        begin = text.rfind("\n", 0, sign.start()) + 1
        end = text.find("\n", sign.start())
        end = len(text) if end < 0 else end
        line = text[begin:end]
        if _FAILURE.search(line):
            lines.append(line)
    return lines


def _first_and_last(failures: list[T]) -> list[T]:
    half = MOST_LINES // 2
    return failures if len(failures) <= MOST_LINES else [*failures[:half], *failures[-half:]]

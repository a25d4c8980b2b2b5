"""Read a docstring: its first paragraph, and the parameters that it describes.

Google's ``Args:`` section, reStructuredText's ``:param NAME:`` and NumPy's ``Parameters`` are read.
"""

from __future__ import annotations

import re
from inspect import cleandoc

from msgspec import Struct, field

_SECTION = re.compile(r"^(args|arguments|parameters)\s*:\s*$", re.IGNORECASE)
_OTHER_SECTION = re.compile(
    r"^(returns?|raises|yields?|examples?|notes?|see also)\s*+:?\s*$", re.IGNORECASE
)
# Parts that take all they can and give nothing back: a line of a project's own code can be of any length.
_ENTRY = re.compile(r"^(\*{0,2}\w++)\s*+(?:\([^)]*+\))?\s*+:\s*(.*)$")
_FIELD = re.compile(r"^:param\s++(?:[\w\[\], .|]+\s)?(\w++)\s*+:\s*(.*)$")
_NUMPY = re.compile(r"^(\w++)\s*+(?::.*)?$")


class Docstring(Struct):
    """A docstring's parts."""

    summary: str = ""
    """The first paragraph, in one line."""
    parameters: dict[str, str] = field(default_factory=dict)
    """By name: what a parameter means, in one line."""


def parse_docstring(text: str) -> Docstring:
    """Return the parts of ``text``; empty ones where it has none."""
    lines = cleandoc(text).splitlines()
    result = Docstring(summary=_read_summary(lines))
    style, current = "", ""
    for at, line in enumerate(lines):
        bare = line.strip()
        if match := _FIELD.match(bare):
            style, current = "field", match[1]
            result.parameters[current] = match[2]
        elif _SECTION.match(bare):
            style, current = "google", ""
        elif bare.lower() == "parameters" and lines[at + 1 : at + 2] and _is_rule(lines[at + 1]):
            style, current = "numpy", ""
        elif _OTHER_SECTION.match(bare) or bare.startswith(":"):
            style, current = "", ""
        elif not style or not bare or _is_rule(line):
            current = "" if not bare and style != "google" else current
        else:
            current = _read_line(result, style, current, line)
    return result


def _read_line(result: Docstring, style: str, current: str, line: str) -> str:
    """Take in a line of a section; returns the parameter that it is about."""
    bare, indent = line.strip(), len(line) - len(line.lstrip())
    if style == "google" and indent <= 4 and (match := _ENTRY.match(bare)) and indent > 0:
        result.parameters[match[1].lstrip("*")] = match[2]
        return match[1].lstrip("*")
    if style == "numpy" and indent == 0 and (match := _NUMPY.match(bare)):
        result.parameters[match[1]] = ""
        return match[1]
    if current and indent > 0:
        result.parameters[current] = f"{result.parameters[current]} {bare}".strip()
    return current


def _read_summary(lines: list[str]) -> str:
    summary: list[str] = []
    for line in lines:
        if not line.strip() or line.strip().startswith(":param") or _SECTION.match(line.strip()):
            break
        summary.append(line.strip())
    return " ".join(summary)


def _is_rule(line: str) -> bool:
    return bool(line.strip()) and set(line.strip()) == {"-"}

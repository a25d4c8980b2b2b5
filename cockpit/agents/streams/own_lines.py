"""The lines of a message that are its author's own: neither code, nor a quotation, nor blank.

A status or a verdict counts only there. An agent shows other people's text in code blocks and quotations,
and that text may try to speak for it. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import re

from msgspec import Struct

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_QUOTED = re.compile(r"[ \t]*>")
_CODE = re.compile(r"(?: {4}|\t)")


class OwnLine(Struct, frozen=True):
    """A line of the author's own."""

    number: int
    """Counts the lines of the text, from 0."""
    text: str
    begins_paragraph: bool
    """Whether a blank line, code, a quotation or nothing comes before it."""


def own_lines(text: str) -> list[OwnLine]:
    """Return the lines of the Markdown ``text`` outside fenced and indented code and quotations.

    A quotation lasts to the next blank line. A fence that never ends hides the rest of the text.
    """
    lines: list[OwnLine] = []
    fence, begins, quoted = "", True, False
    for number, line in enumerate(text.splitlines()):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            begins = True
        elif mark:
            fence, begins, quoted = mark[1], True, False
        elif not line.strip():
            begins, quoted = True, False
        elif quoted or _QUOTED.match(line):
            begins = quoted = True
        elif not (begins and _CODE.match(line)):
            lines.append(OwnLine(number, line, begins))
            begins = False
    return lines

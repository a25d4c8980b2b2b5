"""The status in an external agent's last message: a line ``STATUS: done``, ``STATUS: blocked`` or
``STATUS: nothing to do``.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import re

from msgspec import Struct

from cockpit.store.sessions.sessions import NEEDS_ANSWER

_LINE = re.compile(
    r"[ \t*_#`]*status[ \t*_`]*[:=\-][ \t*_`]*(done|blocked|nothing to do)[ \t*_`.!]*", re.I | re.A
)
_VERDICT = re.compile(
    r"[ \t*_#`]*verdict[ \t*_`]*[:=\-][ \t*_`]*(?:pass|fail|blocked)\b", re.I | re.A
)
NOTHING_TO_DO = "NOTHING TO DO:"
"""How the line of a summary starts that says why a task needs no change."""


def read_status(text: str) -> tuple[str, str]:
    """Return ``done``, ``blocked`` or ``needs_answer``, and the text without its status lines.

    A message without a status needs an answer: words alone do not say that the work is done. A reviewer's
    verdict is a status too. Of several statuses the last counts, but one ``blocked`` is enough. Of
    ``nothing to do`` the summary begins with :data:`NOTHING_TO_DO`. Code and quotations are not read.
    """
    statuses: dict[int, str] = {}
    has_verdict = False
    for line in own_lines(text):
        if match := _LINE.fullmatch(line.text):
            statuses[line.number] = match[1].lower()
        has_verdict = has_verdict or _VERDICT.match(line.text) is not None
    rest = (line for number, line in enumerate(text.splitlines()) if number not in statuses)
    summary = "\n".join(rest).strip()
    if not statuses:
        return ("done" if has_verdict else NEEDS_ANSWER), summary
    if "blocked" in statuses.values():
        return "blocked", summary
    if [*statuses.values()][-1] != "done":
        summary = f"{NOTHING_TO_DO} {summary}".strip()
    return "done", summary


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

"""A reviewer's verdict, read from its last message; an unreadable verdict counts as FAIL.

See ``docs/reference/roles.md``.
"""

from __future__ import annotations

import re
from typing import Literal, cast

from msgspec import Struct

from cockpit.agents.streams.own_lines import OwnLine, own_lines

Status = Literal["PASS", "FAIL", "BLOCKED"]

_LINE = re.compile(
    r"[ \t*_#`]*verdict[ \t*_`]*[:=\-][ \t*_`]*(pass|fail|blocked)[ \t*_`.!\u2705\u2714\u274c\ufe0f]*",
    re.I | re.A,
)
# Beside the verdict, even a longer line is enough to doubt it.
_ALSO = re.compile(r"[ \t*_#]*verdict[ \t*_`]*[:=\-][ \t*_`]*(pass|fail|blocked)\b", re.I | re.A)
_LOOKED_AT = re.compile(r"[ \t*_#`-]*looked at[ \t*_`]*[:=][ \t*_`]*(\S.*)", re.I | re.A)


class Verdict(Struct, frozen=True):
    """A reviewer's decision."""

    status: Status
    findings: str
    """The rest of the message."""
    looked_at: str = ""
    """What it says that it looked at: its line ``LOOKED AT: …``; empty without one."""
    readable: bool = True
    """False where no verdict could be read; ``status`` is then FAIL."""


def parse_verdict(text: str, change: str = "") -> Verdict:
    """Return the last verdict of ``text``: a line of its own, which begins or ends the message or is a
    paragraph by itself.

    A verdict in code or in a quotation is not the reviewer's. A message with two that contradict each
    other is FAIL. Where the reviewed ``change`` has such a line itself, only the message's first line
    counts: the reviewer may repeat the others.
    """
    lines = own_lines(text)
    places = [place for place, line in enumerate(lines) if _stands_alone(lines, place)]
    if any(_LINE.fullmatch(line.lstrip("+- ")) for line in change.splitlines()):
        places = [place for place in places if place == 0]
    statuses = [
        match[1].upper()
        for line in lines
        if (match := _LINE.fullmatch(line.text) or _ALSO.match(line.text))
    ]
    if not places:
        return Verdict(
            "FAIL", f"The reviewer gave no readable verdict. {text.strip()}", readable=False
        )
    if len(set(statuses)) > 1:
        return Verdict(
            "FAIL", f"The reviewer gave more than one verdict. {text.strip()}", readable=False
        )
    own = {lines[place].number for place in places}
    rest = [line for number, line in enumerate(text.splitlines()) if number not in own]
    looked_at = next(
        (match[1].strip() for line in lines if (match := _LOOKED_AT.match(line.text))), ""
    )
    return Verdict(cast("Status", statuses[-1]), "\n".join(rest).strip(), looked_at)


def _stands_alone(lines: list[OwnLine], place: int) -> bool:
    """Whether the line is a verdict that begins or ends the message, or is a paragraph by itself."""
    if _LINE.fullmatch(lines[place].text) is None:
        return False
    if place in (0, len(lines) - 1):
        return True
    follows = lines[place + 1]
    ends = follows.begins_paragraph or _LOOKED_AT.match(follows.text) is not None
    return lines[place].begins_paragraph and ends

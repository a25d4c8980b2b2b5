"""A reviewer's verdict, read from its last message; an unreadable verdict counts as FAIL.

See ``docs/reference/roles.md``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

Status = Literal["PASS", "FAIL", "BLOCKED"]

_LINE = re.compile(
    r"[ \t*_#`]*verdict[ \t*_`]*[:=\-][ \t*_`]*(pass|fail|blocked)[ \t*_`.!]*", re.I | re.A
)
# After the first line, even a quoted or longer line is enough to doubt the verdict.
_ALSO = re.compile(r"[ \t*_#>`]*verdict[ \t*_`]*[:=\-][ \t*_`]*(pass|fail|blocked)\b", re.I | re.A)
_LOOKED_AT = re.compile(r"[ \t*_#`-]*looked at[ \t*_`]*[:=][ \t*_`]*(\S.*)", re.I | re.A)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reviewer's decision."""

    status: Status
    findings: str
    """The rest of the message."""
    looked_at: str = ""
    """What it says that it looked at: its line ``LOOKED AT: …``; empty without one."""
    readable: bool = True
    """False where no verdict could be read; ``status`` is then FAIL."""


def parse_verdict(text: str) -> Verdict:
    """Return the verdict that stands alone on the first line of ``text``.

    Anything else is FAIL: a missing line, a later one, a quoted one, or two that contradict each other.
    """
    lines = text.strip().splitlines()
    statuses = [match[1].upper() for line in lines if (match := _ALSO.match(line))]
    if not lines or _LINE.fullmatch(lines[0]) is None:
        return Verdict(
            "FAIL", f"The reviewer gave no readable verdict. {text.strip()}", readable=False
        )
    if len(set(statuses)) > 1:
        return Verdict(
            "FAIL", f"The reviewer gave more than one verdict. {text.strip()}", readable=False
        )
    findings = "\n".join(line for line in lines if _LINE.fullmatch(line) is None).strip()
    looked_at = next((match[1].strip() for line in lines if (match := _LOOKED_AT.match(line))), "")
    return Verdict(cast("Status", statuses[0]), findings, looked_at)

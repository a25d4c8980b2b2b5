"""A reviewer's verdict, read from its last words; what cannot be read counts as FAIL.

Source: design of work, "Doing a task" ("verdict PASS | FAIL | BLOCKED, unreadable counts as FAIL").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

Status = Literal["PASS", "FAIL", "BLOCKED"]

_LINE = re.compile(
    r"[ \t*_#`]*verdict[ \t*_`]*[:=\-][ \t*_`]*(pass|fail|blocked)[ \t*_`.!]*", re.I | re.A
)
# Behind the first line, one that is quoted or goes on is enough to doubt what the first said.
_ALSO = re.compile(r"[ \t*_#>`]*verdict[ \t*_`]*[:=\-][ \t*_`]*(pass|fail|blocked)\b", re.I | re.A)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reviewer decided. ``findings`` is what it said beside it; ``read`` is False when no
    verdict could be read, and ``status`` FAIL for that reason."""

    status: Status
    findings: str
    read: bool = True


def parse_verdict(text: str) -> Verdict:
    """The verdict that stands alone on the first line of ``text``.

    Anything else is FAIL: no such line, one further down, one that is quoted, another that says
    something else.
    """
    lines = text.strip().splitlines()
    said = [match[1].upper() for line in lines if (match := _ALSO.match(line))]
    if not lines or _LINE.fullmatch(lines[0]) is None:
        return Verdict(
            "FAIL", f"The reviewer gave no verdict that can be read. {text.strip()}", False
        )
    if len(set(said)) > 1:
        return Verdict("FAIL", f"The reviewer gave more than one verdict. {text.strip()}", False)
    findings = "\n".join(line for line in lines if _LINE.fullmatch(line) is None).strip()
    return Verdict(cast("Status", said[0]), findings)

"""The status in an external agent's last message: a line ``STATUS: done`` or ``STATUS: blocked``.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import re

_LINE = re.compile(
    r"[ \t*_#>`]*status[ \t*_`]*[:=\-][ \t*_`]*(done|blocked)[ \t*_`.!]*", re.I | re.A
)


def read_status(text: str) -> tuple[str, str]:
    """Return ``done`` or ``blocked``, and the text without its status lines.

    A message without a status is done: tests and reviews follow. One with both is blocked.
    """
    lines = text.strip().splitlines()
    statuses = [match[1].lower() for line in lines if (match := _LINE.fullmatch(line))]
    summary = "\n".join(line for line in lines if _LINE.fullmatch(line) is None).strip()
    return ("blocked" if "blocked" in statuses else "done"), summary

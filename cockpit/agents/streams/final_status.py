"""The status in an external agent's last message: a line ``STATUS: done`` or ``STATUS: blocked``.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import re

from cockpit.store.sessions.sessions import NEEDS_ANSWER

_LINE = re.compile(
    r"[ \t*_#>`]*status[ \t*_`]*[:=\-][ \t*_`]*(done|blocked)[ \t*_`.!]*", re.I | re.A
)


def read_status(text: str) -> tuple[str, str]:
    """Return ``done``, ``blocked`` or ``needs_answer``, and the text without its status lines.

    A message without a status is done, because tests and reviews follow; one that ends with a question
    needs an answer. A message with both is blocked.
    """
    lines = text.strip().splitlines()
    statuses = [match[1].lower() for line in lines if (match := _LINE.fullmatch(line))]
    summary = "\n".join(line for line in lines if _LINE.fullmatch(line) is None).strip()
    if not statuses and summary.rstrip(" \t*_`\"')").endswith("?"):
        return NEEDS_ANSWER, summary
    return ("blocked" if "blocked" in statuses else "done"), summary

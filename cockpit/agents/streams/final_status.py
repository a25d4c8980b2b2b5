"""The status in an external agent's last message: a line ``STATUS: done``, ``STATUS: blocked`` or
``STATUS: nothing to do``.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import re

from cockpit.agents.streams.own_lines import own_lines
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

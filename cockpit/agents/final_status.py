"""What an agent without our ``finish`` says at its end: a line with its status, then words."""

from __future__ import annotations

import re

_LINE = re.compile(
    r"[ \t*_#>`]*status[ \t*_`]*[:=\-][ \t*_`]*(done|blocked)[ \t*_`.!]*", re.I | re.A
)


def read_status(text: str) -> tuple[str, str]:
    """(``done`` or ``blocked``, the text without the line that says so).

    One that says nothing of it is done: tests and reviews come after it. One that says both is
    blocked.
    """
    lines = text.strip().splitlines()
    said = [match[1].lower() for line in lines if (match := _LINE.fullmatch(line))]
    words = "\n".join(line for line in lines if _LINE.fullmatch(line) is None).strip()
    return ("blocked" if "blocked" in said else "done"), words

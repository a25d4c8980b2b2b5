"""The outline of a long result: its head, the lines that say what failed, and its end.

It keeps the meaning of a failure where the whole output has no room. See ``docs/reference/kernel.md``, facts.
"""

from __future__ import annotations

import re

from cockpit.core.text import pluralize

MIN_OUTLINED_CHARS = 1_200
"""Shorter results have no outline: they are short enough as they are."""
_HEAD_LINES = 2
_SALIENT_LINES = 14
_HALF = _SALIENT_LINES // 2
_TAIL_LINES = 6
_LINE_CHARS = 160
_SALIENT = re.compile(
    r"\b(?:FAIL(?:ED|URES?|ING)?|ERRORS?|[A-Za-z]*(?:Error|Exception)|[Ff]ail(?:ed|ure|ing)|error"
    r"|panic(?:ked)?|assert(?:ion)?|Traceback|expected|not ok|refused|denied|cannot)\b|^E  |✖|✗|●"
)


def clip_result(text: str, limit: int) -> str:
    """Return ``text``, the middle of a longer one cut out but for the lines that say what failed."""
    if len(text) <= limit:
        return text
    half = limit // 2
    middle = text[half:-half].splitlines()
    salient = [_cut(line) for line in middle if _SALIENT.search(line)]
    kept = salient if len(salient) <= _SALIENT_LINES else [*salient[:_HALF], *salient[-_HALF:]]
    left_out = pluralize(len(text) - limit, "character")
    note = f"[… {left_out} left out …]"
    return "\n".join([text[:half], note, *kept, *([note] if kept else []), text[-half:]])


def outline_result(result: str, receipt: str) -> str | None:
    """Return the outline of a call's result, or None where it is short.

    ``receipt`` is the scope item that shows the whole result.
    """
    if len(result) < MIN_OUTLINED_CHARS:
        return None
    lines = result.splitlines()
    last = max(len(lines) - _TAIL_LINES, 0)
    shown = [*range(min(_HEAD_LINES, len(lines))), *range(last, len(lines))]
    salient = [at for at in range(_HEAD_LINES, last) if _SALIENT.search(lines[at])]
    # The end of an output sums up what failed; its first failures say why.
    chosen = salient if len(salient) <= _SALIENT_LINES else [*salient[:_HALF], *salient[-_HALF:]]
    places = sorted({*shown, *chosen})
    text = "\n".join(_cut(lines[at]) for at in places)
    left_out = len(lines) - len(places)
    return f"{text}\n[{pluralize(left_out, 'line')} left out; {receipt} shows the whole result]"


def _cut(line: str) -> str:
    return line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"

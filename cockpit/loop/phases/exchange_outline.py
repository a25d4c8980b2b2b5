"""The outline of a long result: its head, the lines that say what failed, and its end.

It keeps the meaning of a failure where the whole output has no room. See ``docs/reference/kernel.md``, facts.
"""

from __future__ import annotations

from cockpit.core.failure_lines import find_failure_lines, shorten_line
from cockpit.core.text import pluralize

MIN_OUTLINED_CHARS = 1_200
"""Shorter results have no outline: they are short enough as they are."""
_HEAD_LINES = 2
_TAIL_LINES = 6


def outline_result(result: str, receipt: str) -> str | None:
    """Return the outline of a call's result, or None where it is short.

    ``receipt`` is the scope item that shows the whole result.
    """
    if len(result) < MIN_OUTLINED_CHARS:
        return None
    lines = result.splitlines()
    last = max(len(lines) - _TAIL_LINES, 0)
    shown = [*range(min(_HEAD_LINES, len(lines))), *range(last, len(lines))]
    # The end of an output sums up what failed; its first failures say why.
    failures = [_HEAD_LINES + at for at in find_failure_lines(lines[_HEAD_LINES:last])]
    places = sorted({*shown, *failures})
    text = "\n".join(shorten_line(lines[at]) for at in places)
    left_out = len(lines) - len(places)
    return f"{text}\n[{pluralize(left_out, 'line')} left out; {receipt} shows the whole result]"

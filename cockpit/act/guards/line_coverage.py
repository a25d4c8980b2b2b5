"""Which lines of a text are covered by parts of it. See ``docs/reference/guards.md``, redundant reads."""

from __future__ import annotations

from collections.abc import Iterable


def covers_lines(parts: Iterable[tuple[int, int]], first: int, last: int) -> bool:
    """Return whether ``parts`` together contain all lines from ``first`` to ``last``.

    Parts are first and last lines, from 1, both included; they may overlap, and ``(0, 0)`` is none. A range
    without a line is not covered.
    """
    if first < 1 or last < first:
        return False
    at = first
    for start, end in sorted(parts):
        if start > at:
            return False
        at = max(at, end + 1)
        if at > last:
            return True  # later parts begin further down
    return False


def clip_lines(first: int, last: int, total: int) -> tuple[int, int]:
    """Return the lines of a range that a text of ``total`` lines has; 0 where that is not known.

    A range that begins past the end stays as it is.
    """
    return (first, min(last, total)) if 0 < first <= total else (first, last)

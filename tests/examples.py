"""How many examples of a property are tried: ``COCKPIT_EXAMPLES=50`` tries fifty times as many."""

from __future__ import annotations

import os

_TIMES = float(os.environ.get("COCKPIT_EXAMPLES") or 1)


def examples(count: int) -> int:
    """Return how many examples to try where ``count`` are enough for each run of the tests."""
    return max(1, round(count * _TIMES))

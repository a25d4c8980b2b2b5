"""Estimating a task: the median and the spread of past ones of its kind, or the shipped default. Pure.

Every quantity is a range: a tenth of tasks is expected below ``low``, a tenth above ``high``. The rules are
in ``docs/reference/planner.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from cockpit.store.journal.details.estimates import Expected, Range

MOST_HISTORY = 40
"""Past tasks that are looked at, the newest first."""
OWN_HISTORY = 3
"""Past tasks from which on an estimate rests on them."""


class Used(Struct, frozen=True):
    """What a task took, or has taken so far."""

    waves: int
    tokens: int
    cost_usd: float | None = None
    """None where no price was known."""
    work_ms: int = 0
    """Milliseconds of models and programs."""


def estimate_task(past: Sequence[Used], default: Expected, usd_a_token: float | None) -> Expected:
    """Estimate a task from past ones of its kind, the newest first.

    ``usd_a_token`` is what a token of its model costs, None where no price is known.
    """
    past, expected = past[:MOST_HISTORY], default
    if len(past) >= OWN_HISTORY:
        expected = Expected(
            waves=_spread([task.waves for task in past]),
            tokens=_spread([task.tokens for task in past]),
            cost_usd=None,
            work_ms=_spread([task.work_ms for task in past]),
            basis="history",
            history=len(past),
        )
    cost = None if usd_a_token is None else expected.tokens.times(usd_a_token)
    return replace(expected, cost_usd=cost)


def correct(first: Expected, used: Used) -> Expected:
    """Return the estimate of a task that took ``used`` and passed the range of ``first``.

    As many waves again are the most, half as many are likely, each at the task's own rate so far.
    """
    done = max(1, used.waves)
    waves = Range(low=done + 1, likely=done + max(1, done // 2), high=2 * done)
    cost = None if used.cost_usd is None else waves.times(used.cost_usd / done)
    work = waves.times(used.work_ms / done)
    tokens = waves.times(used.tokens / done)
    return replace(first, waves=waves, tokens=tokens, cost_usd=cost, work_ms=work)


def _spread(values: Sequence[int]) -> Range:
    """Return the 10th, 50th and 90th percentile."""
    ordered = sorted(values)
    low, likely, high = (ordered[ceil(share * len(ordered)) - 1] for share in (0.1, 0.5, 0.9))
    return Range(low=low, likely=likely, high=high)

"""An estimate as the store and the journal have it.

See ``docs/reference/planner.md``.
"""

from __future__ import annotations

import msgspec

from cockpit.core.read_record import decode_json
from cockpit.decide.planner.estimate import Estimate, Span
from cockpit.decide.planner.estimate_total import Total
from cockpit.store.journal.details.estimates import Expected, Range


def write_estimate(estimate: Estimate) -> str:
    """Return the estimate as JSON."""
    return msgspec.json.encode(estimate, order="sorted").decode()


def read_estimate(text: str) -> Estimate | None:
    """Read a stored estimate; None for an empty text, and for one that another version wrote otherwise."""
    if not text:
        return None
    try:
        return decode_json(text, Estimate)
    except msgspec.DecodeError:
        return None


def describe_expected(estimate: Estimate) -> Expected:
    """Return the estimate as journal events have it."""
    cost = estimate.cost_usd
    return Expected(
        waves=_range(estimate.waves),
        tokens=_range(estimate.tokens),
        cost_usd=None if cost is None else _range(cost),
        work_ms=_range(estimate.work_ms),
        basis=estimate.basis,
        history=estimate.history,
    )


def describe_total(total: Total) -> Expected:
    """Return the estimate of many tasks as one; ``history`` counts the tasks of kinds with own history."""
    cost, learned = total.cost_usd, total.tasks - total.without_history
    basis = "defaults" if not learned else "history" if not total.without_history else "mixed"
    return Expected(
        waves=_range(total.waves),
        tokens=_range(total.tokens),
        cost_usd=None if cost is None else _range(cost),
        work_ms=_range(total.work_ms),
        basis=basis,
        history=learned,
    )


def _range(span: Span) -> Range:
    low, likely, high = (round(each, 6) for each in (span.low, span.likely, span.high))
    return Range(low=low, likely=likely, high=high)

"""The measures of chains as rows: a name, a number, an aim, and the single values.

See ``docs/reference/measures.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from cockpit.chains.report.estimate_accuracy import EstimateAccuracy
from cockpit.chains.report.measures import Measures
from cockpit.core.text import pluralize

NOTHING = "–"
_Unit = Literal["share", "number", "mean", "money", "time"]
_RARE = 0.05
"""The share up to which interruptions are rare."""


class MeasureRow(Struct, frozen=True):
    """One measure."""

    name: str
    value: float | None
    """None where nothing was measured."""
    unit: _Unit
    aim: str = ""
    """The value to aim at, as text."""
    more_is_better: bool | None = None
    """None where neither direction is better."""
    series: tuple[float, ...] = ()
    """The single values, oldest first."""
    each: str = "worker"
    """What one value of the series belongs to: a worker, a chain or a day."""
    detail: str = ""
    """What the number is made of."""
    is_met: bool | None = None
    """Whether the aim is met; None without an aim, or where nothing was measured."""

    @property
    def shown(self) -> str:
        """The number as text: ``94%``, ``6.5``, ``3``."""
        return format_measure(self.value, self.unit)

    @property
    def span(self) -> str:
        """The range and length of the series as text; empty without one."""
        if not self.series:
            return ""
        unit: _Unit = "number" if self.unit == "mean" else self.unit
        low, high = format_measure(min(self.series), unit), format_measure(max(self.series), unit)
        between = low if low == high else f"{low} to {high}"
        return f"{between} · {pluralize(len(self.series), self.each)}"


def format_measure(value: float | None, unit: _Unit) -> str:
    """Return the number with its unit; a dash for None."""
    if value is None:
        return NOTHING
    if unit == "share":
        return f"{100 * value:.0f}%"
    if unit == "money":
        return f"${value:,.2f}"
    if unit == "time":
        return _time(value)
    return f"{value:.1f}" if unit == "mean" else f"{value:,.0f}"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _is(value: float | None, met: Callable[[float], bool]) -> bool | None:
    return None if value is None else met(value)


def measure_rows(measures: Measures) -> tuple[MeasureRow, ...]:
    """Return every measure as a row."""
    batches, reviews = measures.batches, measures.reviews
    return (
        MeasureRow(
            "Token limit used per worker",
            measures.context_mean,
            "share",
            "below 100%",
            None,
            measures.context,
            detail=f"of its limit, {pluralize(measures.workers, 'worker')}"
            + (
                f", at most {format_measure(max(measures.context), 'share')}"
                if measures.context
                else ""
            ),
            is_met=_is(measures.context_mean, lambda mean: mean < 1),
        ),
        MeasureRow(
            "Utility left out of a packet",
            max(measures.dropped, default=None),
            "share",
            "",
            False,
            measures.dropped,
            detail="at most, in one worker",
        ),
        MeasureRow(
            "Batches completed",
            measures.batch_completion,
            "share",
            "95% or more",
            True,
            measures.batch_shares,
            detail=f"{batches.get('completed', 0)} of {sum(batches.values())}",
            is_met=_is(measures.batch_completion, lambda share: share >= 0.95),
        ),
        MeasureRow(
            "Workers per chain",
            measures.chain_mean,
            "mean",
            "",
            None,
            tuple(map(float, measures.chains)),
            each="chain",
            detail=f"{pluralize(len(measures.chains), 'chain')}, at most {max(measures.chains, default=0)}",
        ),
        MeasureRow(
            "Tasks per worker",
            measures.tasks_mean,
            "mean",
            "8 or more",
            True,
            tuple(map(float, measures.tasks)),
            detail=f"{measures.tasks_done} done, {measures.tasks_blocked} blocked",
            is_met=_is(measures.tasks_mean, lambda mean: mean >= 8),
        ),
        MeasureRow(
            "Time per worker",
            measures.seconds_mean,
            "time",
            series=measures.seconds,
            detail=f"{format_measure(sum(measures.seconds), 'time')} in all",
        ),
        MeasureRow(
            "Cost per worker",
            measures.cost_mean,
            "money",
            "",
            False,
            measures.costs_usd,
            detail=_costs(measures),
        ),
        MeasureRow(
            "Reviews failed",
            measures.review_failure,
            "share",
            "",
            False,
            measures.review_days,
            each="day",
            detail=f"{reviews.get('failed', 0)} of {sum(reviews.values())}",
        ),
        MeasureRow(
            "Workers interrupted mid-task",
            measures.interruption,
            "share",
            "rare",
            False,
            detail=f"{measures.interrupted} of {measures.workers}; {measures.crashed} died",
            is_met=_is(measures.interruption, lambda share: share <= _RARE),
        ),
        MeasureRow(
            "Restarts by hand",
            float(measures.restarts),
            "number",
            "none",
            False,
            detail="chains that a user resumed",
            is_met=measures.restarts == 0 if measures.chains or measures.restarts else None,
        ),
        MeasureRow(
            "Waves off their estimate",
            measures.estimates.waves_error,
            "share",
            "",
            False,
            measures.estimates.waves,
            each="estimate",
            detail=_estimates(measures.estimates),
        ),
    )


def _costs(measures: Measures) -> str:
    if not measures.costs_usd:
        return "no price is known"
    total = sum(measures.costs_usd)
    text = f"{format_measure(total, 'money')} in all"
    if not measures.tasks_done:
        return text
    return f"{text}, {format_measure(total / measures.tasks_done, 'money')} per task that is done"


def _estimates(estimates: EstimateAccuracy) -> str:
    if not estimates.count:
        return "median; nothing that was estimated is done"
    tokens = format_measure(estimates.tokens_error, "share")
    within = format_measure(estimates.within_share, "share")
    return f"median; {within} of {estimates.count} within their range, tokens off {tokens}"


class MeasureComparison(Struct, frozen=True):
    """One measure before and after a date; ``change`` has its unit, shares have percentage points."""

    name: str
    before: str
    after: str
    change: str
    better: bool | None


def compare_rows(
    before: Sequence[MeasureRow], after: Sequence[MeasureRow]
) -> tuple[MeasureComparison, ...]:
    """Return rows of two periods side by side; both have the same measures in the same order."""
    pairs = zip(before, after, strict=True)
    return tuple(
        MeasureComparison(old.name, old.shown, new.shown, *_change(old, new)) for old, new in pairs
    )


def _change(old: MeasureRow, new: MeasureRow) -> tuple[str, bool | None]:
    if old.value is None or new.value is None:
        return NOTHING, None
    difference = new.value - old.value
    text = f"{100 * difference:+.0f} points" if new.unit == "share" else f"{difference:+.1f}"
    if new.unit == "number":
        text = f"{difference:+,.0f}"
    if new.unit in ("money", "time"):
        text = ("-" if difference < 0 else "+") + format_measure(abs(difference), new.unit)
    return text, None if new.more_is_better is None or not difference else (
        difference > 0
    ) == new.more_is_better

"""The measures as a person reads them: a name, a number, what to aim at, and how it went.

Source: seed 004, phase 4 and "Success Metrics".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cockpit.chains.report.measures import Measures
from cockpit.core.text import pluralize

NOTHING = "–"
_Unit = Literal["share", "number", "mean"]


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """``value`` is None where nothing was measured; ``up`` tells whether more is better, None that
    neither is. ``series`` are the single sessions, chains or days, oldest first, of which ``each`` says
    what one is."""

    name: str
    value: float | None
    unit: _Unit
    aim: str = ""
    up: bool | None = None
    series: tuple[float, ...] = ()
    each: str = "session"
    told: str = ""

    @property
    def shown(self) -> str:
        """The number as it is written: ``94%``, ``6.5``, ``3``."""
        return format_measure(self.value, self.unit)

    @property
    def span(self) -> str:
        """What the series is made of, and from where to where it goes; empty without one."""
        if not self.series:
            return ""
        unit: _Unit = "share" if self.unit == "share" else "number"
        low, high = format_measure(min(self.series), unit), format_measure(max(self.series), unit)
        between = low if low == high else f"{low} to {high}"
        return f"{between} · {pluralize(len(self.series), self.each)}"


def format_measure(value: float | None, unit: _Unit) -> str:
    """A number of that unit; a dash for none."""
    if value is None:
        return NOTHING
    if unit == "share":
        return f"{100 * value:.0f}%"
    return f"{value:.1f}" if unit == "mean" else f"{value:,.0f}"


def measure_rows(found: Measures) -> tuple[MeasureRow, ...]:
    """Every measure, in the order of the seed."""
    batches, reviews = found.batches, found.reviews
    return (
        MeasureRow(
            "Context used per session",
            found.context_mean,
            "share",
            "below 100%",
            None,
            found.context,
            told=f"of its limit, {pluralize(found.sessions, 'session')}"
            + (f", at most {format_measure(max(found.context), 'share')}" if found.context else ""),
        ),
        MeasureRow(
            "Utility left out of a packet",
            max(found.dropped, default=None),
            "share",
            "",
            False,
            found.dropped,
            told="at most, in a session",
        ),
        MeasureRow(
            "Batches completed",
            found.batch_completion,
            "share",
            "95% or more",
            True,
            found.batch_shares,
            told=f"{batches.get('completed', 0)} of {sum(batches.values())}",
        ),
        MeasureRow(
            "Sessions per chain",
            found.chain_mean,
            "mean",
            "",
            None,
            tuple(map(float, found.chains)),
            each="chain",
            told=f"{pluralize(len(found.chains), 'chain')}, at most {max(found.chains, default=0)}",
        ),
        MeasureRow(
            "Tasks per session",
            found.tasks_mean,
            "mean",
            "8 or more",
            True,
            tuple(map(float, found.tasks)),
            told=f"{found.tasks_done} done, {found.tasks_blocked} blocked",
        ),
        MeasureRow(
            "Reviews failed",
            found.review_failure,
            "share",
            "",
            False,
            found.review_days,
            each="day",
            told=f"{reviews.get('failed', 0)} of {sum(reviews.values())}",
        ),
        MeasureRow(
            "Sessions interrupted mid-task",
            found.interruption,
            "share",
            "rare",
            False,
            told=f"{found.interrupted} of {found.sessions}; {found.crashed} died",
        ),
        MeasureRow(
            "Restarts by hand",
            float(found.restarts),
            "number",
            "none",
            False,
            told="chains that a person went on with",
        ),
    )


@dataclass(frozen=True, slots=True)
class MeasureComparison:
    """One measure before and after a date. ``change`` is written in its unit (shares in points)."""

    name: str
    before: str
    after: str
    change: str
    better: bool | None


def compare_measures(before: Measures, after: Measures) -> tuple[MeasureComparison, ...]:
    """The measures of two times side by side."""
    pairs: Sequence[tuple[MeasureRow, MeasureRow]] = list(
        zip(measure_rows(before), measure_rows(after), strict=True)
    )
    return tuple(
        MeasureComparison(old.name, old.shown, new.shown, *_change(old, new)) for old, new in pairs
    )


def _change(old: MeasureRow, new: MeasureRow) -> tuple[str, bool | None]:
    if old.value is None or new.value is None:
        return NOTHING, None
    by = new.value - old.value
    words = f"{100 * by:+.0f} points" if new.unit == "share" else f"{by:+.1f}"
    if new.unit == "number":
        words = f"{by:+,.0f}"
    return words, None if new.up is None or not by else (by > 0) == new.up

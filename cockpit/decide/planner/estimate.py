"""Estimating a task from what tasks of its kind took. Pure: the same input gives the same estimate.

Every quantity is a range: a tenth of tasks is expected below ``low``, a tenth above ``high``. The rules are
in ``docs/reference/planner.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from cockpit.decide.planner.defaults import Prior

LOW, LIKELY, HIGH = 0.1, 0.5, 0.9
"""The quantiles of a range."""
PRIOR_WEIGHT = 2.0
"""How many past sessions the prior counts as."""
MOST_HISTORY = 40
"""Past sessions that are looked at, the newest first."""
OWN_HISTORY = 5
"""Past sessions from which on an estimate rests on the project's own history."""
WAVES_BY_SIZE, TOKENS_BY_SIZE = 0.3, 0.5
"""A task of twice the size takes 1.23 times the waves and 1.41 times the tokens."""
MOST_RATIO = 16.0
"""Sizes further apart than this count as so far apart."""
MOST_ABOVE_MEDIAN = 8.0
"""A past session counts as at most so many times the median of its kind, and at least its eighth."""


class Point(NamedTuple):
    """A value, and how much it counts."""

    value: float
    weight: float


class Span(Struct, frozen=True):
    """A range: ``low`` and ``high`` are the 10th and the 90th percentile, ``likely`` the median."""

    low: float
    likely: float
    high: float

    def times(self, factor: float) -> Span:
        """Return the range of so many times the quantity."""
        return Span(self.low * factor, self.likely * factor, self.high * factor)

    def contains(self, value: float) -> bool:
        """Whether ``value`` is within the range."""
        return self.low <= value <= self.high


class PastTask(Struct, frozen=True):
    """What one past task took. ``size`` is 0 where it is not known."""

    waves: int
    tokens: int
    size: int = 0
    cost_usd: float | None = None
    """None where no price was known."""
    work_ms: int | None = None
    """Milliseconds of models and programs; None where they were not measured."""


class Used(Struct, frozen=True):
    """What a task has taken so far."""

    waves: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    work_ms: int | None = None
    """None where it was not added up."""


class Estimate(Struct, frozen=True):
    """What a task takes, from its beginning to its end."""

    waves: Span
    tokens: Span
    cost_usd: Span | None
    """US dollars; None where no price is known."""
    work_ms: Span
    """Milliseconds of models and programs, without the time that anybody waits for the user."""
    history: int
    """Past tasks of the kind that it rests on; 0: on the shipped defaults alone."""
    points: tuple[Point, ...]
    """The numbers of waves that it rests on, ascending; a revision chooses among them."""
    usd_a_token: float | None = None

    @property
    def basis(self) -> str:
        """``history``, ``mixed`` (few past tasks, so the defaults still count) or ``defaults``."""
        if self.history >= OWN_HISTORY:
            return "history"
        return "mixed" if self.history else "defaults"


def estimate_task(
    past: Sequence[PastTask], prior: Prior, size: int, *, usd_a_token: float | None = None
) -> Estimate:
    """Estimate a task of ``size`` tokens from past ones of its kind, the newest first.

    ``usd_a_token`` is what a token of its model costs, None where no price is known.
    """
    past = past[:MOST_HISTORY]
    waves = [task.waves * scale(size, task.size, WAVES_BY_SIZE) for task in past]
    tokens = [task.tokens * scale(size, task.size, TOKENS_BY_SIZE) for task in past]
    work = [
        task.work_ms * scale(size, task.size, WAVES_BY_SIZE)
        for task in past
        if task.work_ms is not None
    ]
    by_waves = scale(size, prior.size, WAVES_BY_SIZE)
    by_tokens = scale(size, prior.size, TOKENS_BY_SIZE)
    points = weigh(waves, [each * by_waves for each in prior.waves])
    token_span = find_span(weigh(tokens, [each * by_tokens for each in prior.tokens]))
    return Estimate(
        waves=_at_least_one(_whole(find_span(points))),
        tokens=_whole(token_span),
        cost_usd=None if usd_a_token is None else _whole(token_span).times(usd_a_token),
        work_ms=_whole(find_span(weigh(work, [each * by_waves for each in prior.work_ms]))),
        history=len(past),
        points=points,
        usd_a_token=usd_a_token,
    )


def scale(size: int, past_size: int, exponent: float) -> float:
    """Return how many times as much a task of ``size`` takes as one of ``past_size``; 1 for unknown sizes."""
    if size <= 0 or past_size <= 0:
        return 1.0
    ratio = max(1 / MOST_RATIO, min(MOST_RATIO, size / past_size))
    return float(ratio**exponent)


def weigh(values: Sequence[float], prior: Sequence[float]) -> tuple[Point, ...]:
    """Return past values with the prior's (low, likely, high), ascending.

    One value cannot carry the range away: each counts as at most :data:`MOST_ABOVE_MEDIAN` times the median.
    """
    ordered = sorted(max(0.0, value) for value in values)
    if ordered:
        middle = ordered[(len(ordered) - 1) // 2]
        least, most = middle / MOST_ABOVE_MEDIAN, middle * MOST_ABOVE_MEDIAN
        ordered = [max(least, min(most, value)) for value in ordered]
    parts = (PRIOR_WEIGHT / 4, PRIOR_WEIGHT / 2, PRIOR_WEIGHT / 4)
    points = [Point(value, 1.0) for value in ordered]
    points += [Point(max(0.0, value), part) for value, part in zip(prior, parts, strict=True)]
    return tuple(sorted(points))


def find_span(points: Sequence[Point]) -> Span:
    """Return the range of weighted values, which are in ascending order."""
    return Span(*(_quantile(points, share) for share in (LOW, LIKELY, HIGH)))


def revise(first: Estimate, used: Used) -> Estimate:
    """Return the estimate after ``used``: the first one, given that the task is not done yet.

    Waves: of the values that the first estimate rests on, only those above the waves so far still count.
    Beyond all of them, one more wave for every four so far is likely, and as many again the most. Tokens: the
    waves to come, at the task's own rate so far, in which the first estimate counts as two waves.
    """
    if used.waves <= 0:
        return first
    left = [point for point in first.points if point.value > used.waves]
    if left:
        waves = find_span(left)
    else:
        waves = Span(used.waves + 1, used.waves + max(1, used.waves // 4), 2 * used.waves)
    waves = _whole(
        Span(*(max(each, used.waves + 1) for each in (waves.low, waves.likely, waves.high)))
    )
    tokens = _extend(first.tokens, first.waves, waves, used.waves, used.tokens)
    if used.work_ms is None:
        rate = first.work_ms.likely / max(1.0, first.waves.likely)
        work = _whole(waves.times(rate))
    else:
        work = _extend(first.work_ms, first.waves, waves, used.waves, used.work_ms)
    cost = None
    price = first.usd_a_token
    if used.cost_usd is not None and used.tokens > 0:
        price = used.cost_usd / used.tokens
    if price is not None:
        spent = used.cost_usd if used.cost_usd is not None else price * used.tokens
        cost = Span(
            *(
                spent + max(0.0, each - used.tokens) * price
                for each in (tokens.low, tokens.likely, tokens.high)
            )
        )
    return replace(first, waves=waves, tokens=tokens, work_ms=work, cost_usd=cost)


def _extend(first: Span, made_waves: Span, waves: Span, done: int, used: int) -> Span:
    """Return ``used`` and what the waves to come add, at the blended rate of a wave."""
    expected = first.likely / max(1.0, made_waves.likely)
    rate = (used + PRIOR_WEIGHT * expected) / (done + PRIOR_WEIGHT)
    return _whole(
        Span(
            *(used + max(0.0, each - done) * rate for each in (waves.low, waves.likely, waves.high))
        )
    )


def _quantile(points: Sequence[Point], share: float) -> float:
    """Return the smallest value at or below which ``share`` of the weight is."""
    wanted = share * sum(point.weight for point in points)
    reached = 0.0
    for point in points:
        reached += point.weight
        if reached >= wanted - 1e-9:
            return point.value
    return points[-1].value


def _at_least_one(span: Span) -> Span:
    """Nothing is done in no wave at all."""
    return Span(max(1, span.low), max(1, span.likely), max(1, span.high))


def _whole(span: Span) -> Span:
    return Span(round(span.low), round(span.likely), round(span.high))

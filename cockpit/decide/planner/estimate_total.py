"""The estimate of many tasks together, and the time that workers need for them. Pure.

See ``docs/reference/planner.md``, totals.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from math import sqrt

from msgspec import Struct

from cockpit.decide.planner.estimate import OWN_HISTORY, Estimate, Span

NOTHING = Span(0, 0, 0)


class Total(Struct, frozen=True):
    """What many tasks take together."""

    tasks: int
    waves: Span
    tokens: Span
    cost_usd: Span | None
    """US dollars; None where the price of any task is not known."""
    work_ms: Span
    """Milliseconds of models and programs, one task after another."""
    without_history: int
    """Tasks of kinds with fewer than :data:`OWN_HISTORY` past ones."""


def add_up(estimates: Sequence[Estimate]) -> Total:
    """Return the estimate of all tasks together; of none, nothing."""

    def add(choose: Callable[[Estimate], Span]) -> Span:
        learned = [choose(each) for each in estimates if each.history >= OWN_HISTORY]
        guessed = [choose(each) for each in estimates if each.history < OWN_HISTORY]
        return _join([*learned, _sum(guessed)])

    is_priced = all(each.cost_usd is not None for each in estimates)
    return Total(
        tasks=len(estimates),
        waves=add(lambda each: each.waves),
        tokens=add(lambda each: each.tokens),
        cost_usd=add(lambda each: each.cost_usd or NOTHING) if is_priced else None,
        work_ms=add(lambda each: each.work_ms),
        without_history=sum(each.history < OWN_HISTORY for each in estimates),
    )


def schedule(durations: Sequence[float], waits: Sequence[Collection[int]], workers: int) -> float:
    """Return how long ``workers`` need, each task as soon as those that it waits for are done.

    ``waits`` are places of other tasks, by place. Tasks that wait for each other in a circle never begin,
    and count after all others.
    """
    open_waits = [len(set(others)) for others in waits]
    followers: dict[int, list[int]] = {}
    for place, others in enumerate(waits):
        for other in set(others):
            followers.setdefault(other, []).append(place)
    ready = [place for place, count in enumerate(open_waits) if not count]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now, started = 0.0, 0
    while ready or running:
        while ready and len(running) < max(1, workers):
            place = heapq.heappop(ready)
            heapq.heappush(running, (now + max(0.0, durations[place]), place))
            started += 1
        now, ended = heapq.heappop(running)
        for follower in followers.get(ended, ()):
            open_waits[follower] -= 1
            if not open_waits[follower]:
                heapq.heappush(ready, follower)
    stuck = [durations[place] for place, count in enumerate(open_waits) if count]
    return now + sum(stuck)


def _sum(spans: Sequence[Span]) -> Span:
    """Add ranges that are wrong together: they rest on the same guess."""
    return Span(
        sum(span.low for span in spans),
        sum(span.likely for span in spans),
        sum(span.high for span in spans),
    )


def _join(spans: Sequence[Span]) -> Span:
    """Add ranges that are wrong each by itself: some take longer and others shorter than expected."""
    likely = sum(span.likely for span in spans)
    below = sqrt(sum((span.likely - span.low) ** 2 for span in spans))
    above = sqrt(sum((span.high - span.likely) ** 2 for span in spans))
    return Span(max(0.0, likely - below), likely, likely + above)

"""The estimate of many tasks together, and the time that workers need for them. Pure.

See ``docs/reference/planner.md``, tasks and chains.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence

from cockpit.store.journal.details.estimates import Expected, Range

NOTHING = Range(low=0, likely=0, high=0)


def add_up(estimates: Sequence[Expected]) -> Expected:
    """Return the estimate of all tasks together; ``history`` counts those that rest on past tasks."""

    def add(choose: Callable[[Expected], Range]) -> Range:
        ranges = [choose(each) for each in estimates]
        return Range(
            low=sum(each.low for each in ranges),
            likely=sum(each.likely for each in ranges),
            high=sum(each.high for each in ranges),
        )

    learned = sum(each.basis == "history" for each in estimates)
    is_priced = all(each.cost_usd is not None for each in estimates)
    return Expected(
        waves=add(lambda each: each.waves),
        tokens=add(lambda each: each.tokens),
        cost_usd=add(lambda each: each.cost_usd or NOTHING) if is_priced else None,
        work_ms=add(lambda each: each.work_ms),
        basis="defaults" if not learned else "mixed" if learned < len(estimates) else "history",
        history=learned,
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

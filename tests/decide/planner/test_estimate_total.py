"""The estimate of many tasks together: ranges, and the time that workers need."""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.decide.planner.defaults import find_default
from cockpit.decide.planner.estimate import Used, estimate_task
from cockpit.decide.planner.estimate_total import NOTHING, add_up, schedule
from cockpit.store.journal.details.estimates import Expected


def estimate(waves: int, history: int, price: float | None = 1e-6) -> Expected:
    past = [Used(waves, 1_000 * waves) for _ in range(history)]
    return estimate_task(past, find_default("bug"), price)


def test_ranges_add_up_and_nothing_takes_nothing():
    assert (add_up([]).waves, add_up([]).cost_usd) == (NOTHING, NOTHING)
    known, guessed = estimate(20, 20), estimate(20, 0)
    total = add_up([known, known, guessed])
    assert total.waves.likely == 40 + guessed.waves.likely
    assert (total.basis, total.history) == ("mixed", 2)


def test_one_task_without_a_price_leaves_the_sum_without_one():
    assert add_up([estimate(5, 9), estimate(5, 9, None)]).cost_usd is None
    assert add_up([estimate(5, 9)] * 2).cost_usd is not None


durations = st.lists(st.floats(0, 1_000), min_size=1, max_size=30)


@pytest.mark.search
@settings(max_examples=examples(10), deadline=None)
@given(durations, st.integers(1, 8), st.data())
def test_the_time_is_between_the_longest_way_and_one_after_another(durations, workers, data):
    count = len(durations)
    waits = [
        data.draw(st.sets(st.integers(0, max(0, at - 1)), max_size=3)) if at else set()
        for at in range(count)
    ]
    took = schedule(durations, waits, workers)
    ends: list[float] = []
    for at, duration in enumerate(durations):
        ends.append(duration + max((ends[other] for other in waits[at]), default=0.0))
    assert max(*ends, sum(durations) / workers) - 1e-6 <= took <= sum(durations) + 1e-6
    assert schedule(durations, waits, 1) == pytest.approx(sum(durations))


def test_tasks_in_a_circle_count_after_all_others():
    assert schedule([1, 2, 4], [set(), {2}, {1}], 4) == 7

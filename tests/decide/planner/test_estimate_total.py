"""The estimate of many tasks together: ranges, and the time that workers need."""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.decide.planner.defaults import find_prior
from cockpit.decide.planner.estimate import Estimate, PastTask, Span, estimate_task
from cockpit.decide.planner.estimate_total import add_up, schedule

SIZE = find_prior("bug").size


def estimate(waves: int, history: int, price: float | None = 1e-6) -> Estimate:
    past = [PastTask(waves + at % 5, 1_000 * (waves + at % 5), SIZE) for at in range(history)]
    return estimate_task(past, find_prior("bug"), SIZE, usd_a_token=price)


def test_nothing_takes_nothing():
    total = add_up([])
    assert (total.tasks, total.waves, total.cost_usd) == (0, Span(0, 0, 0), Span(0, 0, 0))


def test_tasks_with_history_vary_each_by_itself_and_guesses_together():
    known, guessed = [estimate(20, 20)] * 16, [estimate(20, 0)] * 16
    spread = lambda span: (span.high - span.likely) / span.likely  # noqa: E731
    assert spread(add_up(known).waves) == pytest.approx(spread(known[0].waves) / 4)
    assert spread(add_up(guessed).waves) == pytest.approx(spread(guessed[0].waves))
    assert add_up([*known, *guessed]).without_history == 16


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

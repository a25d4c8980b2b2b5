"""The estimator: never negative, monotone, deterministic, and not carried away by one value."""

from __future__ import annotations

import random

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.decide.planner.defaults import find_prior
from cockpit.decide.planner.estimate import (
    MOST_ABOVE_MEDIAN,
    Estimate,
    PastTask,
    Span,
    Used,
    estimate_task,
    revise,
    scale,
)

pytestmark = pytest.mark.search

PRIOR = find_prior("bug")
SIZE = PRIOR.size
past_task = st.builds(
    PastTask, waves=st.integers(1, 2_000), tokens=st.integers(0, 10**8), size=st.integers(0, 200_000),
    cost_usd=st.none() | st.floats(0, 500),
    work_ms=st.none() | st.integers(1, 10**8),
)  # fmt: skip
history = st.lists(past_task, max_size=60)
size = st.integers(1, 200_000)
SPANS = ("waves", "tokens", "work_ms")


def spans(estimate: Estimate) -> list[Span]:
    return [getattr(estimate, name) for name in SPANS]


def is_below(one: Span, other: Span) -> bool:
    return one.low <= other.low and one.likely <= other.likely and one.high <= other.high


@settings(max_examples=examples(10), deadline=None)
@given(history, size, st.none() | st.floats(0, 0.001))
def test_an_estimate_is_a_range_that_is_never_negative(past, size, price):
    estimate = estimate_task(past, PRIOR, size, usd_a_token=price)
    for span in [*spans(estimate), *([estimate.cost_usd] if estimate.cost_usd else [])]:
        assert 0 <= span.low <= span.likely <= span.high
    assert estimate.waves.low >= 1
    assert (estimate.cost_usd is None) == (price is None)
    assert estimate.history == min(40, len(past))


@settings(max_examples=examples(10), deadline=None)
@given(st.lists(past_task, max_size=40), size, st.randoms(use_true_random=False))
def test_it_depends_on_the_tasks_alone_and_not_on_their_order(past, size, dice):
    shuffled = list(past)
    dice.shuffle(shuffled)
    one, other = (estimate_task(each, PRIOR, size, usd_a_token=1e-6) for each in (past, shuffled))
    assert one == other == estimate_task(past, PRIOR, size, usd_a_token=1e-6)


@settings(max_examples=examples(10), deadline=None)
@given(history, size, st.integers(0, 100_000))
def test_a_larger_task_is_never_estimated_lower(past, size, more):
    small, large = (estimate_task(past, PRIOR, each) for each in (size, size + more))
    assert all(is_below(*pair) for pair in zip(spans(small), spans(large), strict=True))


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(2, 30), st.integers(4, 40), st.integers(1_000, 10**6))
def test_one_outlier_moves_the_likely_value_no_further_than_a_neighbour(usual, count, outlier):
    past = [PastTask(usual + at % 3, 1_000 * (usual + at % 3), SIZE) for at in range(count)]
    plain = estimate_task(past, PRIOR, SIZE)
    with_one = estimate_task([PastTask(outlier, outlier * 1_000, SIZE), *past], PRIOR, SIZE)
    assert plain.waves.likely <= with_one.waves.likely <= max(usual + 2, plain.waves.likely)
    assert with_one.waves.high <= max(PRIOR.waves[2], MOST_ABOVE_MEDIAN * (usual + 3))


@settings(max_examples=examples(10), deadline=None)
@given(
    st.lists(past_task, max_size=40),
    size,
    st.integers(0, 3_000),
    st.integers(0, 10**8),
    st.none() | st.floats(0, 500),
)
def test_a_revision_is_never_below_what_was_used(past, size, waves, tokens, cost):
    made = estimate_task(past, PRIOR, size, usd_a_token=1e-6)
    revised = revise(made, Used(waves, tokens, cost))
    if waves == 0:
        assert revised == made
        return
    assert waves < revised.waves.low <= revised.waves.likely <= revised.waves.high
    assert 0 <= revised.work_ms.low <= revised.work_ms.likely <= revised.work_ms.high
    assert tokens <= revised.tokens.low <= revised.tokens.likely <= revised.tokens.high
    if cost is not None:
        assert revised.cost_usd is not None
        assert cost - 1e-9 <= revised.cost_usd.low <= revised.cost_usd.high + 1e-9


def test_sizes_count_less_than_in_proportion_and_unknown_ones_not_at_all():
    assert scale(2 * SIZE, SIZE, 0.5) == pytest.approx(2**0.5)
    assert scale(0, SIZE, 0.5) == scale(SIZE, 0, 0.5) == 1.0
    assert scale(10**9, 1, 0.5) == 4.0


def test_the_range_holds_four_of_five_of_what_it_learned_from():
    dice = random.Random(7)
    values = [max(1, round(dice.lognormvariate(2.3, 0.6))) for _ in range(240)]
    inside = 0
    for at in range(40, 240):
        past = [PastTask(value, value * 1_000) for value in reversed(values[at - 40 : at])]
        inside += estimate_task(past, PRIOR, 0).waves.contains(values[at])
    assert 0.7 <= inside / 200 <= 0.95

"""The estimator: ranges of past tasks, and no correction below what was used."""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.decide.planner.defaults import find_default
from cockpit.decide.planner.estimate import Used, correct, estimate_task

pytestmark = pytest.mark.search

DEFAULT = find_default("bug")
past_task = st.builds(
    Used, waves=st.integers(1, 2_000), tokens=st.integers(0, 10**8),
    cost_usd=st.none() | st.floats(0, 500), work_ms=st.integers(0, 10**8),
)  # fmt: skip


@settings(max_examples=examples(10), deadline=None)
@given(st.lists(past_task, max_size=60), st.randoms(use_true_random=False))
def test_an_estimate_is_a_range_of_the_past_or_the_default(past, dice):
    made = estimate_task(past, DEFAULT, 1e-6)
    assert made.cost_usd is not None
    for span in (made.waves, made.tokens, made.work_ms, made.cost_usd):
        assert 0 <= span.low <= span.likely <= span.high
    newest = past[:40]
    assert made.history == (len(newest) if len(newest) >= 3 else 0)
    if made.history:
        waves = [task.waves for task in newest]
        assert {made.waves.low, made.waves.likely, made.waves.high} <= set(waves)
        assert sum(each <= made.waves.likely for each in waves) * 2 >= len(waves)
        dice.shuffle(newest)
        assert estimate_task(newest, DEFAULT, 1e-6) == made
    else:
        assert made.waves == DEFAULT.waves
    assert estimate_task(past, DEFAULT, None).cost_usd is None


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(1, 3_000), st.integers(0, 10**8), st.none() | st.floats(0, 500))
def test_a_correction_is_never_below_what_was_used(waves, tokens, cost):
    corrected = correct(DEFAULT, Used(waves, tokens, cost))
    assert waves < corrected.waves.low <= corrected.waves.likely <= corrected.waves.high
    assert tokens <= corrected.tokens.low <= corrected.tokens.likely <= corrected.tokens.high
    if cost is not None:
        assert corrected.cost_usd is not None
        assert cost - 1e-6 <= corrected.cost_usd.low <= corrected.cost_usd.high

"""Sizes of batches against the seed's table, and the measures of a session against its quota."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.chains.batch_size import BatchInvalid, BatchSize, Outcome, batch_size, outcome_of
from cockpit.chains.handover import WorkerLimits, WorkerUsage

OUTCOMES = st.sampled_from(["completed", "blocked", "interrupted", "failed"])
STATUSES = st.sampled_from(["done", "blocked", "interrupted", "failed"])


def by_the_seeds_table(outcomes: list[Outcome]) -> list[int]:
    """Every size of a session, worked out from the rows of the table as they are written."""
    sizes = [2]
    for outcome in outcomes:
        size = sizes[-1]
        if outcome == "completed" and size < 4:
            size += 1
        if outcome in ("interrupted", "failed") and size > 2:
            size -= 1
        sizes.append(size)
    return sizes


@given(st.lists(OUTCOMES, max_size=40))
def test_an_adaptive_size_follows_the_table(outcomes: list[Outcome]) -> None:
    size, seen = batch_size("auto"), []
    for outcome in outcomes:
        seen.append(size.size)
        size = size.after(outcome)
    assert [*seen, size.size] == by_the_seeds_table(outcomes)


@given(st.integers(1, 16), st.lists(OUTCOMES))
def test_a_fixed_size_stays(count: int, outcomes: list[Outcome]) -> None:
    size = batch_size(str(count))
    for outcome in outcomes:
        size = size.after(outcome)
    assert size == BatchSize(count, adaptive=False)


@pytest.mark.parametrize("told", ["0", "17", "-1", "", "two", "1.5", "²", "+3", "99999999999"])
def test_what_is_no_size_is_refused(told: str) -> None:
    with pytest.raises(BatchInvalid, match="from 1 to 16"):
        batch_size(told)


@given(st.lists(STATUSES, min_size=1, max_size=8))
def test_a_batch_ends_as_the_worst_of_its_tasks(statuses: list[str]) -> None:
    ended = outcome_of(statuses)
    if "failed" in statuses:
        assert ended == "failed"
    elif "interrupted" in statuses:
        assert ended == "interrupted"
    elif "blocked" in statuses:
        assert ended == "blocked"
    else:
        assert ended == "completed"


@pytest.mark.parametrize(
    ("pressure", "reason", "passed"),
    [
        (WorkerUsage(WorkerLimits()), "", ""),
        (WorkerUsage(WorkerLimits(tokens=100), tokens=99), "", ""),
        (WorkerUsage(WorkerLimits(tokens=100), tokens=100), "pressure", "tokens"),
        (WorkerUsage(WorkerLimits(tokens=None), tokens=10**9), "", ""),
        (WorkerUsage(WorkerLimits(dropped_share=0.5), dropped_share=0.5), "", ""),
        (WorkerUsage(WorkerLimits(dropped_share=0.5), dropped_share=0.51), "pressure", "dropped"),
        (WorkerUsage(WorkerLimits(dropped_share=None), dropped_share=1.0), "", ""),
        (WorkerUsage(WorkerLimits(cost_usd=1.0), cost_usd=0.99), "", ""),
        (WorkerUsage(WorkerLimits(cost_usd=1.0), cost_usd=1.0), "limit", ""),
        (WorkerUsage(WorkerLimits(wall_s=60.0), wall_s=61.0), "limit", ""),
        (
            WorkerUsage(WorkerLimits(tokens=1, wall_s=60.0), tokens=2, wall_s=61.0),
            "limit",
            "tokens",
        ),
    ],
)
def test_which_measure_passed_its_limit(pressure: WorkerUsage, reason: str, passed: str) -> None:
    assert (pressure.reason, pressure.passed) == (reason, passed)


@pytest.mark.parametrize(
    ("pressure", "at_once"),
    [
        (WorkerUsage(WorkerLimits(dropped_share=0.5), dropped_share=0.9), ""),
        (
            WorkerUsage(WorkerLimits(tokens=1, dropped_share=0.5), tokens=1, dropped_share=0.9),
            "pressure",
        ),
        (WorkerUsage(WorkerLimits(cost_usd=1.0), dropped_share=0.9, cost_usd=2.0), "limit"),
    ],
)
def test_what_was_left_out_waits_for_the_batchs_end(pressure: WorkerUsage, at_once: str) -> None:
    assert pressure.at_once == at_once


def test_pressure_in_words() -> None:
    quota = WorkerLimits(tokens=50_000)
    assert (
        WorkerUsage(quota, tokens=41_200, dropped_share=0.124).words()
        == "41,200 of 50,000 tokens (82 %), 12 % of what was known left out"
    )
    assert WorkerUsage(WorkerLimits(), tokens=7).words().startswith("7 tokens, 0 %")

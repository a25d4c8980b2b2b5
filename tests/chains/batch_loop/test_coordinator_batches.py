"""Sizes of batches against the seed's table, and the measures of a session against its limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.chains.batch_size import (
    BatchInvalid,
    BatchSize,
    Outcome,
    batch_outcome,
    read_batch_size,
)
from cockpit.chains.handover import WorkerLimits, WorkerUsage

pytestmark = pytest.mark.slow

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
    size, seen = read_batch_size("auto"), []
    for outcome in outcomes:
        seen.append(size.size)
        size = size.after(outcome)
    assert [*seen, size.size] == by_the_seeds_table(outcomes)


@given(st.integers(1, 16), st.lists(OUTCOMES))
def test_a_fixed_size_stays(count: int, outcomes: list[Outcome]) -> None:
    size = read_batch_size(str(count))
    for outcome in outcomes:
        size = size.after(outcome)
    assert size == BatchSize(count, adaptive=False)


def test_a_size_is_a_number_from_1_to_16() -> None:
    for told in ("0", "17", "-1", "", "two", "1.5", "²", "+3", "99999999999"):
        with pytest.raises(BatchInvalid, match="from 1 to 16"):
            read_batch_size(told)


@given(st.lists(STATUSES, min_size=1, max_size=8))
def test_a_batch_ends_as_the_worst_of_its_tasks(statuses: list[str]) -> None:
    ended = batch_outcome(statuses)
    if "failed" in statuses:
        assert ended == "failed"
    elif "interrupted" in statuses:
        assert ended == "interrupted"
    elif "blocked" in statuses:
        assert ended == "blocked"
    else:
        assert ended == "completed"


@pytest.mark.parametrize(
    ("usage", "reason", "exceeded"),
    [
        (WorkerUsage(WorkerLimits()), "", ""),
        (WorkerUsage(WorkerLimits(tokens=100), tokens=99), "", ""),
        (WorkerUsage(WorkerLimits(tokens=100), tokens=100), "pressure", "tokens"),
        (WorkerUsage(WorkerLimits(dropped_share=0.5), dropped_share=0.51), "pressure", "dropped"),
        (WorkerUsage(WorkerLimits(cost_usd=1.0), cost_usd=1.0), "limit", ""),
        (WorkerUsage(WorkerLimits(wall_s=60.0), wall_s=61.0), "limit", ""),
        (
            WorkerUsage(WorkerLimits(tokens=1, wall_s=60.0), tokens=2, wall_s=61.0),
            "limit",
            "tokens",
        ),
    ],
)
def test_which_measure_exceeds_its_limit(usage: WorkerUsage, reason: str, exceeded: str) -> None:
    assert (usage.end_reason, usage.exceeded) == (reason, exceeded)


@pytest.mark.parametrize(
    ("usage", "before_step"),
    [
        (WorkerUsage(WorkerLimits(dropped_share=0.5), dropped_share=0.9), ""),
        (
            WorkerUsage(WorkerLimits(tokens=1, dropped_share=0.5), tokens=1, dropped_share=0.9),
            "pressure",
        ),
        (WorkerUsage(WorkerLimits(cost_usd=1.0), dropped_share=0.9, cost_usd=2.0), "limit"),
    ],
)
def test_left_out_facts_end_a_worker_only_after_the_batch(
    usage: WorkerUsage, before_step: str
) -> None:
    assert usage.end_reason_before_step == before_step

"""Fan-out: in order, bounded, and nobody pays for another's failure."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.observe.fan_out import Job, JobOutcome, fan_out


class Bench:
    """Jobs that count how many of them run at once."""

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.ended = 0

    def job(self, source: str, key: str, turns: int = 2) -> Job[str]:
        async def run() -> str:
            for name in (source, "all"):
                self.running[name] += 1
                self.most[name] = max(self.most[name], self.running[name])
            try:
                for _ in range(turns):
                    await asyncio.sleep(0)
            finally:
                for name in (source, "all"):
                    self.running[name] -= 1
                self.ended += 1
            return key

        return Job(source, key, run)


async def fail() -> str:
    raise ValueError("broken")


def statuses(outcomes: list[JobOutcome[str]]) -> list[str]:
    return [outcome.status for outcome in outcomes]


async def test_a_job_that_ignores_its_end_is_left_behind() -> None:
    released = asyncio.Event()

    async def stubborn() -> str:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue  # what a faulty source would do
        return "late"

    bench = Bench()
    jobs = [Job("stubborn", "x", stubborn), *(bench.job("good", str(n)) for n in range(50))]
    outcomes = await fan_out(jobs, limit=2, timeout_s=0.05)
    released.set()
    assert statuses(outcomes) == ["timed_out"] + ["done"] * 50
    assert bench.ended == 50


@pytest.mark.search
@settings(max_examples=examples(15), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.booleans()), max_size=40),
    st.integers(1, 6),
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 3)),
)
def test_any_mix_ends_in_order_and_within_bounds(
    shapes: list[tuple[str, int, bool]], limit: int, quotas: dict[str, int]
) -> None:
    bench = Bench()
    jobs = [
        Job(source, str(n), fail) if broken else bench.job(source, str(n), turns)
        for n, (source, turns, broken) in enumerate(shapes)
    ]
    outcomes = asyncio.run(fan_out(jobs, limit=limit, per_source=quotas))
    expected = ["failed" if broken else "done" for _, _, broken in shapes]
    assert statuses(outcomes) == expected
    assert bench.most["all"] <= limit
    assert all(bench.most[source] <= quota for source, quota in quotas.items())

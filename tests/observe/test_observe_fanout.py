"""Fan-out: in order, bounded, and nobody pays for another's failure."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.observe.fan_out import MAX_JOBS, Job, JobOutcome, fan_out


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


async def hang() -> str:
    await asyncio.Event().wait()
    return "never"


def statuses(outcomes: list[JobOutcome[str]]) -> list[str]:
    return [outcome.status for outcome in outcomes]


async def test_outcomes_come_in_the_order_of_jobs_within_the_limits() -> None:
    bench = Bench()
    jobs = [bench.job(f"s{n % 3}", str(n), turns=n % 5) for n in range(500)]
    outcomes = await fan_out(jobs, limit=20, per_source={"s0": 3, "s1": 1})
    assert [outcome.value for outcome in outcomes] == [str(n) for n in range(500)]
    assert [outcome.job for outcome in outcomes] == jobs
    assert bench.most["all"] <= 20 and bench.most["s0"] <= 3 and bench.most["s1"] == 1
    assert bench.most["s2"] > 3


async def test_a_hanging_source_costs_its_own_jobs_alone() -> None:
    bench = Bench()
    jobs = [Job("stuck", str(n), hang) for n in range(6)]
    jobs += [bench.job("good", str(n)) for n in range(200)]
    outcomes = await fan_out(jobs, limit=4, per_source={"stuck": 3}, timeout_s=0.05)
    assert statuses(outcomes) == ["timed_out"] * 6 + ["done"] * 200


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


async def test_a_timeout_of_the_jobs_own_is_its_failure() -> None:
    async def own() -> str:
        raise TimeoutError("my own")

    (outcome,) = await fan_out([Job("a", "1", own)], timeout_s=60)
    assert outcome.status == "failed" and str(outcome.error) == "my own"


async def test_cancelling_ends_every_job() -> None:
    bench = Bench()
    jobs = [bench.job("a", str(n), turns=10**9) for n in range(300)]
    running = asyncio.create_task(fan_out(jobs, limit=50))
    while bench.running["all"] < 50:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert bench.running["all"] == 0 and bench.ended == 50
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_ten_thousand_jobs_and_no_more() -> None:
    bench = Bench()
    jobs = [bench.job(f"s{n % 9}", str(n), turns=0) for n in range(MAX_JOBS)]
    assert len(await fan_out(jobs)) == MAX_JOBS
    with pytest.raises(ValueError, match="more than"):
        await fan_out([*jobs, jobs[0]])


async def test_limits_below_one_are_refused() -> None:
    for limits in ({"limit": 0}, {"per_source": {"a": 0}}):
        with pytest.raises(ValueError, match="at least 1"):
            await fan_out([Bench().job("a", "1")], **limits)  # type: ignore[arg-type]  # on purpose


@pytest.mark.search
@settings(max_examples=examples(25), deadline=None)
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

"""Fan-out: many observation jobs at once, bounded, each on its own.

A pool of workers serves one queue per source in turn. A source has a quota of jobs that run at
once; one that fails or hangs costs its own jobs and nobody else's. Source: RFC-003 §10.1.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T = TypeVar("T")

MAX_JOBS = 10_000
"""``MAX_OBSERVATION_JOBS_PER_WAVE``."""

MAX_CONCURRENT = 128
"""``MAX_CONCURRENT_OBSERVERS``."""

MAX_FACTS = 50_000
"""``MAX_FACTS_PER_WAVE``."""

JOB_TIMEOUT_S = 60.0
GRACE_S = 2.0
"""How long a job that was told to end may take to end."""


@dataclass(frozen=True, slots=True)
class Job(Generic[T]):
    """One thing to observe. ``source`` names whose quota it takes, ``key`` what it is."""

    source: str
    key: str
    run: Callable[[], Awaitable[T]]


@dataclass(frozen=True, slots=True)
class JobOutcome(Generic[T]):
    """How a job ended. ``value`` is set when it is ``done``, ``error`` when it ``failed``;
    ``took_s`` is the seconds that it ran."""

    job: Job[T]
    status: Literal["done", "failed", "timed_out"]
    value: T | None = None
    error: Exception | None = None
    took_s: float = 0.0


async def fan_out(
    jobs: Sequence[Job[T]],
    *,
    limit: int = MAX_CONCURRENT,
    per_source: Mapping[str, int] | None = None,
    timeout_s: float = JOB_TIMEOUT_S,
    grace_s: float = GRACE_S,
) -> list[JobOutcome[T]]:
    """Run ``jobs``; returns their outcomes in the order of the jobs. Limits as :func:`run_jobs`."""
    ended: list[JobOutcome[T] | None] = [None] * len(jobs)
    await run_jobs(
        jobs,
        ended.__setitem__,
        limit=limit,
        per_source=per_source,
        timeout_s=timeout_s,
        grace_s=grace_s,
    )
    return [outcome for outcome in ended if outcome is not None]


async def run_jobs(
    jobs: Sequence[Job[T]],
    settle: Callable[[int, JobOutcome[T]], None],
    *,
    limit: int = MAX_CONCURRENT,
    per_source: Mapping[str, int] | None = None,
    timeout_s: float = JOB_TIMEOUT_S,
    grace_s: float = GRACE_S,
) -> None:
    """Run ``jobs``, at most ``limit`` at once and ``per_source[source]`` of a source.

    ``settle`` is called with a job's index and outcome as each ends, once; the outcome is not kept.
    Each job has ``timeout_s`` seconds, and ``grace_s`` more to end when told to; then it is given up.
    Cancelling ends every running job before it returns, as far as it ends in that time. Raises
    ``ValueError`` for more than :data:`MAX_JOBS` jobs and for limits below 1.
    """
    if len(jobs) > MAX_JOBS:
        raise ValueError(f"{len(jobs)} jobs are more than {MAX_JOBS}")
    quotas = dict(per_source or {})
    if limit < 1 or any(quota < 1 for quota in quotas.values()):
        raise ValueError("limits must be at least 1")
    await _Pool(jobs, settle, limit, quotas, timeout_s, grace_s).run()


class _Pool(Generic[T]):
    """Workers that serve the sources in turn."""

    def __init__(
        self,
        jobs: Sequence[Job[T]],
        settle: Callable[[int, JobOutcome[T]], None],
        limit: int,
        quotas: dict[str, int],
        timeout_s: float,
        grace_s: float,
    ) -> None:
        self.jobs = jobs
        self.settle = settle
        self.limit = limit
        self.timeout_s = timeout_s
        self.grace_s = grace_s
        self.ended = bytearray(len(jobs))
        self.left = len(jobs)
        self.waiting: dict[str, deque[int]] = {}
        for number, job in enumerate(jobs):
            self.waiting.setdefault(job.source, deque()).append(number)
        self.free = {source: quotas.get(source, limit) for source in self.waiting}
        self.turn = deque(self.waiting)
        self.workers: dict[asyncio.Task[None], tuple[int, float] | None] = {}
        self.late: set[asyncio.Task[None]] = set()
        self.stuck: set[asyncio.Task[None]] = set()
        self.finished = asyncio.Event()

    async def run(self) -> None:
        if not self.jobs:
            return
        self._staff()
        try:
            while not self.finished.is_set():
                await self._watch()
        finally:
            await self._end()

    def _staff(self) -> None:
        """As many workers as can have something to do."""
        wanted = sum(min(self.free[s], len(self.waiting[s])) for s in self.turn)
        for _ in range(min(wanted, self.limit - len(self.workers))):
            task = asyncio.create_task(self._work())
            self.workers[task] = None
            task.add_done_callback(self._gone)

    def _gone(self, task: asyncio.Task[None]) -> None:
        self.workers.pop(task, None)
        self.stuck.discard(task)
        self.late.discard(task)

    def _next(self) -> int | None:
        """The next job of the next source in turn that may run one more."""
        turn = self.turn
        for _ in range(len(turn)):
            source = turn[0]
            if self.free[source] > 0:
                queue = self.waiting[source]
                number = queue.popleft()
                self.free[source] -= 1
                if queue:
                    turn.rotate(-1)
                else:
                    turn.popleft()
                return number
            turn.rotate(-1)
        return None

    async def _work(self) -> None:
        me = asyncio.current_task()
        if me is None:
            raise RuntimeError("a worker runs as a task")
        clock = asyncio.get_running_loop().time
        while me not in self.stuck and (number := self._next()) is not None:
            began = clock()
            self.workers[me] = (number, began)
            job = self.jobs[number]
            try:
                value = await job.run()
            except asyncio.CancelledError:
                if me not in self.late:
                    raise
                over = TimeoutError()
                self._settle(number, JobOutcome(job, "timed_out", None, over, clock() - began))
            except Exception as error:
                ended: Literal["timed_out", "failed"] = "timed_out" if me in self.late else "failed"
                self._settle(number, JobOutcome(job, ended, None, error, clock() - began))
            else:
                self._settle(number, JobOutcome(job, "done", value, None, clock() - began))
            if me in self.late:
                self.late.discard(me)
                me.uncancel()

    def _settle(self, number: int, outcome: JobOutcome[T]) -> None:
        if self.ended[number]:
            return
        self.ended[number] = True
        self.settle(number, outcome)
        self.free[outcome.job.source] += 1
        self.left -= 1
        if self.left == 0:
            self.finished.set()
        elif len(self.workers) < self.limit and self.turn:
            self._staff()

    async def _watch(self) -> None:
        """Wait a little, then end jobs whose time is over.

        One look at all workers costs less than a timer for each job. A job that ignores its end is
        given up, and another worker takes its place.
        """
        try:
            async with asyncio.timeout(min(max(self.timeout_s / 20, 0.01), 1.0)):
                await self.finished.wait()
        except TimeoutError:
            now = asyncio.get_running_loop().time()
            for task, doing in list(self.workers.items()):
                over = now - doing[1] - self.timeout_s if doing is not None else -1.0
                if doing is not None and over > self.grace_s:
                    self._give_up(task, doing[0], now - doing[1])
                elif over >= 0 and task not in self.late:
                    self.late.add(task)
                    task.cancel()

    def _give_up(self, task: asyncio.Task[None], number: int, took_s: float) -> None:
        self.workers.pop(task, None)
        self.stuck.add(task)
        task.cancel()
        over = TimeoutError()
        self._settle(number, JobOutcome(self.jobs[number], "timed_out", None, over, took_s))

    async def _end(self) -> None:
        self.turn.clear()
        tasks = [*self.workers, *self.stuck]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self.grace_s)

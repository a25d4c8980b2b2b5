"""Fan-out: run many observation jobs concurrently, within limits.

A pool of asyncio workers serves the queues of the sources in turn. A source has a quota of jobs that
run at once; a source that fails or hangs delays only its own jobs. See ``docs/reference/loop.md``.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, Literal, TypeVar

from msgspec import Struct

T = TypeVar("T")

MAX_JOBS = 10_000
"""``MAX_OBSERVATION_JOBS_PER_WAVE``."""

MAX_CONCURRENT = 128
"""``MAX_CONCURRENT_OBSERVERS``."""

MAX_FACTS = 50_000
"""``MAX_FACTS_PER_WAVE``."""

JOB_TIMEOUT_S = 60.0
GRACE_S = 2.0
"""How long a cancelled job may take to end before it is abandoned."""


class ObserveLimits(Struct, frozen=True):
    """The hard limits of observation; see ``docs/reference/kernel.md``."""

    max_jobs: int = MAX_JOBS
    """Observation jobs of a wave."""
    max_concurrent: int = MAX_CONCURRENT
    """Jobs that run at the same time."""
    max_facts: int = MAX_FACTS
    """Facts that a wave stores."""
    job_timeout_s: float = JOB_TIMEOUT_S


class Job(Struct, Generic[T], frozen=True):
    """One observation: ``source`` names the quota that it counts against, ``key`` identifies it."""

    source: str
    key: str
    run: Callable[[], Awaitable[T]]


class JobOutcome(Struct, Generic[T], frozen=True):
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
) -> list[JobOutcome[T]]:
    """Run ``jobs`` as :func:`run_jobs` does; returns their outcomes in the order of the jobs."""
    ended: list[JobOutcome[T] | None] = [None] * len(jobs)
    await run_jobs(
        jobs,
        ended.__setitem__,
        limit=limit,
        per_source=per_source,
        timeout_s=timeout_s,
    )
    return [outcome for outcome in ended if outcome is not None]


async def run_jobs(
    jobs: Sequence[Job[T]],
    settle: Callable[[int, JobOutcome[T]], None],
    *,
    limit: int = MAX_CONCURRENT,
    per_source: Mapping[str, int] | None = None,
    timeout_s: float = JOB_TIMEOUT_S,
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Run ``jobs``, at most ``limit`` at once and ``per_source[source]`` of a source.

    ``settle`` is called with a job's index and outcome as each ends, once; the outcome is not kept. What a
    job took is told by ``now``, a monotonic clock in seconds.
    A job that runs for ``timeout_s`` seconds is cancelled, and abandoned if it has not ended
    :data:`GRACE_S` later. Cancelling the fan-out cancels every running job and waits as long for them.
    Raises ``ValueError`` for more than :data:`MAX_JOBS` jobs and for limits below 1.
    """
    if len(jobs) > MAX_JOBS:
        raise ValueError(f"{len(jobs)} jobs are more than {MAX_JOBS}")
    quotas = dict(per_source or {})
    if limit < 1 or any(quota < 1 for quota in quotas.values()):
        raise ValueError("limits must be at least 1")
    await _Pool(jobs, settle, limit, quotas, timeout_s, now).run()


class _Pool(Generic[T]):
    """Workers that serve the sources in turn."""

    def __init__(
        self,
        jobs: Sequence[Job[T]],
        settle: Callable[[int, JobOutcome[T]], None],
        limit: int,
        quotas: dict[str, int],
        timeout_s: float,
        now: Callable[[], float],
    ) -> None:
        self.now = now
        self.jobs = jobs
        self.settle = settle
        self.limit = limit
        self.timeout_s = timeout_s
        self.ended = bytearray(len(jobs))
        self.unfinished = len(jobs)
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
        self._start_workers()
        try:
            while not self.finished.is_set():
                await self._cancel_late_jobs()
        finally:
            await self._cancel_all()

    def _start_workers(self) -> None:
        """Start as many workers as have a job to run."""
        useful = sum(min(self.free[s], len(self.waiting[s])) for s in self.turn)
        for _ in range(min(useful, self.limit - len(self.workers))):
            task = asyncio.create_task(self._run_worker())
            self.workers[task] = None
            task.add_done_callback(self._forget_worker)

    def _forget_worker(self, task: asyncio.Task[None]) -> None:
        self.workers.pop(task, None)
        self.stuck.discard(task)
        self.late.discard(task)

    def _take_next(self) -> int | None:
        """Take the next job of the next source whose quota has room."""
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

    async def _run_worker(self) -> None:
        me = asyncio.current_task()
        if me is None:
            raise RuntimeError("a worker runs as a task")
        loop = asyncio.get_running_loop()
        while me not in self.stuck and (number := self._take_next()) is not None:
            began = self.now()
            self.workers[me] = (number, loop.time())
            job = self.jobs[number]
            try:
                value = await job.run()
            except asyncio.CancelledError:
                if me not in self.late:
                    raise
                over = TimeoutError()
                self._settle(number, JobOutcome(job, "timed_out", None, over, self.now() - began))
            except Exception as error:
                ended: Literal["timed_out", "failed"] = "timed_out" if me in self.late else "failed"
                self._settle(number, JobOutcome(job, ended, None, error, self.now() - began))
            else:
                self._settle(number, JobOutcome(job, "done", value, None, self.now() - began))
            if me in self.late:
                self.late.discard(me)
                me.uncancel()

    def _settle(self, number: int, outcome: JobOutcome[T]) -> None:
        if self.ended[number]:
            return
        self.ended[number] = True
        self.settle(number, outcome)
        self.free[outcome.job.source] += 1
        self.unfinished -= 1
        if self.unfinished == 0:
            self.finished.set()
        elif len(self.workers) < self.limit and self.turn:
            self._start_workers()

    async def _cancel_late_jobs(self) -> None:
        """Wait a little, then cancel jobs whose time is over.

        One check of all workers costs less than a timer for each job. A job that ignores its
        cancellation is abandoned, and another worker takes its place.
        """
        try:
            async with asyncio.timeout(min(max(self.timeout_s / 20, 0.01), 1.0)):
                await self.finished.wait()
        except TimeoutError:
            now = asyncio.get_running_loop().time()
            for task, doing in list(self.workers.items()):
                over = now - doing[1] - self.timeout_s if doing is not None else -1.0
                if doing is not None and over > GRACE_S:
                    self._abandon(task, doing[0], now - doing[1])
                elif over >= 0 and task not in self.late:
                    self.late.add(task)
                    task.cancel()

    def _abandon(self, task: asyncio.Task[None], number: int, took_s: float) -> None:
        self.workers.pop(task, None)
        self.stuck.add(task)
        task.cancel()
        over = TimeoutError()
        self._settle(number, JobOutcome(self.jobs[number], "timed_out", None, over, took_s))

    async def _cancel_all(self) -> None:
        self.turn.clear()
        # One that has just ended is forgotten only in the loop's next turn.
        tasks = [task for task in (*self.workers, *self.stuck) if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE_S)

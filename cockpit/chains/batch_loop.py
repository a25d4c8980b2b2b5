"""One worker's loop: claim a batch, run its tasks at the same time, count it, repeat.

The worker keeps one line per task, so it does not grow with the work done. See
``docs/reference/chains.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from cockpit.agents.streams.provider_limit import ProviderLimited
from cockpit.backlog import service
from cockpit.chains.batch_size import BatchSize, batch_outcome, read_batch_size
from cockpit.chains.claim_batch import (
    ClaimedTask,
    claim_batch,
    has_work,
    is_being_done,
    scope_of,
    seconds_until_retry,
)
from cockpit.chains.dispatcher import Dispatcher, LocalDispatcher
from cockpit.chains.handover import UsageMeter, WorkerLimits
from cockpit.chains.heartbeat import POLL_S, Heartbeat
from cockpit.core.clock import clock_time, format_time
from cockpit.learn.resume_line import one_line
from cockpit.store.backlog import handoffs, queue_scope
from cockpit.store.chains import chains, retry_delays, task_leases, task_runs, worker_metrics
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.end_reasons import CHAIN_LIMIT, DRAINED
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.chains import ChainDelayed
from cockpit.tasks.outage import LIMIT, Outage, describe_outage, is_outage, outage_reason
from cockpit.tasks.task_context import TaskContext, TaskOutcome

MAX_FAILURES = 2
"""A task that breaks off this often in one worker, for a reason outside the task, is blocked."""

_BY = "engine"


async def run_batches(
    context: TaskContext,
    chain: Chain,
    ordinal: int,
    *,
    limits: WorkerLimits,
    say: Callable[[str], None],
    dispatcher: Dispatcher | None = None,
) -> str:
    """Run batches of the chain's scope as its worker ``ordinal``, whose row exists; returns why it ended.

    That is ``pressure`` (token limit), ``quota`` (number of batches), ``limit`` (the chain's cost or time),
    ``drained``, ``empty``, ``held`` (ready tasks conflict with tasks of others), or an outage:
    ``no model: REASON``, ``no model for now: REASON``, ``machine: REASON``.

    ``dispatcher`` does the tasks; None: this process.
    ``say`` prints a line for the user. Setting ``context.stop`` ends the worker after the current steps;
    cancelling ends it within them. Raises ``IllegalTransition`` when the worker was declared dead,
    ``BatchInvalid``, and the store's errors.
    """
    loop = _BatchLoop(context, chain, ordinal, limits, say, dispatcher or LocalDispatcher())
    try:
        async with asyncio.TaskGroup() as group:
            heartbeat = group.create_task(loop.heartbeat.run())
            reason = await loop.run()
            heartbeat.cancel()
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    return reason


class _BatchLoop:
    """The state of :func:`run_batches`."""

    def __init__(
        self,
        context: TaskContext,
        chain: Chain,
        ordinal: int,
        limits: WorkerLimits,
        say: Callable[[str], None],
        dispatcher: Dispatcher,
    ) -> None:
        self._context = context
        self._store = context.store
        self._chain = chain
        self._ordinal = ordinal
        self._say = say
        self._dispatcher = dispatcher
        self._size = read_batch_size(chain.batch)
        if dispatcher.at_once is not None and self._size.adaptive:
            self._size = BatchSize(dispatcher.at_once, adaptive=False)
        self._meter = UsageMeter(context.store, limits, chain.chain_id, ordinal, say)
        self.heartbeat = Heartbeat(context.store, chain, ordinal, self._meter, say)
        self._failures: Counter[str] = Counter()
        self._outages: Counter[str] = Counter()
        self._skipped: set[str] = set()
        self._outage = Outage()
        self._limited: set[str] = set()
        """Runners whose provider takes no more for now."""

    async def run(self) -> str:
        """Run batch after batch; return why no other one starts."""
        announced, idle_polls = False, 0
        while True:
            now = format_time(self._store.clock.now())
            if not self._store.read_now(
                lambda connection, now=now: has_work(connection, self._chain, now, self._skipped)  # type: ignore[misc]  # a default keeps the loop's value
            ):
                return "empty"
            if reason := self._end_reason():
                return reason
            batch = await self._store.write(
                lambda tx: claim_batch(
                    tx,
                    self._chain,
                    self._ordinal,
                    batch=self.heartbeat.batches + 1,
                    size=self._size.size,
                    skipped=self._skipped,
                )
            )
            if batch:
                outcomes = await self._run_batch(batch)
                self._outage = self._outage.after(outcomes)
                if self._outage.end_reason:
                    return self._outage.end_reason
                if not self._outage.batches:
                    await self._delay_struck(outcomes)
                elif reason := await self._wait_for_model():
                    return reason
                announced, idle_polls = False, 0
                continue
            if delay := self._store.read_now(self._seconds_until_retry):
                idle_polls = 0
                await self._pause(min(delay, POLL_S))
                continue
            holders, some_running = self._store.read_now(self._conflicting_tasks)
            if not announced and holders:
                announced = True
                self._say(
                    f"The ready tasks touch files that {' and '.join(holders)} changes; waiting."
                )
            # Poll twice: the conflicting task may have ended between the claim and the first poll.
            idle_polls = 0 if some_running else idle_polls + 1
            if idle_polls == 2:
                return "held"
            await self._pause(POLL_S)

    async def _wait_for_model(self) -> str:
        """Wait until a model, or the machine, is there again; return why not to, empty otherwise."""
        work, now = self._context.work, self._store.clock.now()
        ends_at = self._outage.ends_at(now)
        if self._outage.kind != LIMIT:
            self._say(
                f"{self._outage.message} The worker tries again at {clock_time(ends_at, now)}."
            )
            await self._pause((ends_at - now).total_seconds())
            return ""
        left = [name for name in work.fallback_runners if name not in self._limited]
        self._limited.add(self._context.runner or "")
        if left and left[0] != self._context.runner:
            self._say(f"{self._outage.message} {left[0]} continues.")
            self._context = replace(self._context, runner=left[0])
            self._outage = Outage()
            return ""
        reason = f"{LIMIT}: {format_time(ends_at)}"
        until = self._chain.resume_until
        if until is not None and (not until or format_time(ends_at) > until):
            return reason
        self._limited.clear()
        self._say(f"Paused: limit until {clock_time(ends_at, now)}. {self._outage.message}")
        delayed = ChainDelayed(
            chain_id=self._chain.chain_id,
            ordinal=self._ordinal,
            attempt=self._outage.batches + 1,
            delay_s=(ends_at - now).total_seconds(),
            starts_at=format_time(ends_at),
            reason=reason,
        )

        def pause(tx: Tx) -> None:
            chains.set_reason(tx, delayed.chain_id, reason)
            tx.journal(delayed, result="error", error_code=ProviderLimited.code)

        await self._store.write(pause)
        clock = self._store.clock
        over_at = clock.monotonic() + (ends_at - now).total_seconds()
        # By both clocks: one stands still while the machine sleeps, the other may be set back.
        while not self._context.stop.is_set() and clock.now() < ends_at:
            if (left_s := over_at - clock.monotonic()) <= 0:
                break
            await self._pause(min(left_s, POLL_S))
        await self._store.write(lambda tx: chains.set_reason(tx, self._chain.chain_id, ""))
        return ""

    async def _delay_struck(self, outcomes: Sequence[TaskOutcome]) -> None:
        """Let tasks wait that met an outage which others of their batch did not, as of one remote machine."""
        struck = [outcome for outcome in outcomes if is_outage(outcome.reason)]
        self._outages.update(outcome.task_id for outcome in struck)

        def delay(tx: Tx) -> None:
            for outcome in struck:
                _delay(tx, outcome, self._outages[outcome.task_id])

        if struck:
            await self._store.write(delay)

    def _end_reason(self) -> str:
        """Why no batch starts; empty while one may."""
        if self._context.stop.is_set():
            return DRAINED
        until = self._chain.resume_until
        if until and format_time(self._store.clock.now()) > until:
            return CHAIN_LIMIT
        return self._meter.before_batch(self.heartbeat.batches)

    async def _run_batch(self, batch: Sequence[ClaimedTask]) -> list[TaskOutcome]:
        """Run the tasks of a batch at the same time, and record the batch."""
        self.heartbeat.batches += 1
        size = self._size.size
        names = ", ".join(claimed.task_id for claimed in batch)
        self._say(f"Batch {self.heartbeat.batches}: {names} (at most {size} at once).")
        outcomes: list[TaskOutcome] = []
        for claimed in batch:
            self._meter.start_task(claimed.task_id)
        try:
            async with asyncio.TaskGroup() as group:
                for claimed in batch:
                    if claimed.resume_message:
                        self._say(claimed.resume_message)
                    running = group.create_task(self._run_task(claimed.task_id, outcomes))
                    self.heartbeat.add(claimed, running)
        except asyncio.CancelledError:
            finished = {outcome.task_id for outcome in outcomes}
            outcomes += [
                TaskOutcome(claimed.task_id, "interrupted", "stopped", reason="stopped")
                for claimed in batch
                if claimed.task_id not in finished
            ]
            await self._record_batch(batch, outcomes, size)
            raise
        await self._record_batch(batch, outcomes, size)
        return outcomes

    async def _record_batch(
        self, batch: Sequence[ClaimedTask], outcomes: Sequence[TaskOutcome], size: int
    ) -> None:
        """Record the batch's result and release its leases."""
        self.heartbeat.clear()
        spent = rejected = 0
        for claimed in batch:
            tokens, rejections = self._meter.end_task(claimed.task_id)
            spent, rejected = spent + tokens, rejected + rejections
        result = batch_outcome(outcome.status for outcome in outcomes)
        self._size = self._size.after(result)
        given_up = [outcome for outcome in outcomes if self._failed_too_often(outcome)]

        def record(tx: Tx) -> None:
            for outcome in given_up:
                _block(tx, outcome)
            for outcome in outcomes:
                if outcome.status == "failed" and outcome not in given_up:
                    _delay(tx, outcome, self._failures[outcome.task_id])
            for claimed in batch:
                task_leases.release(tx, claimed.task_id, claimed.token)
            self.heartbeat.beat(tx)
            worker_metrics.record_batch_end(
                tx,
                self._chain,
                self._ordinal,
                batch=self.heartbeat.batches,
                size=size,
                # A blocked task is a result: the batch is complete.
                outcome="completed" if result == "blocked" else result,
                done=_with_status(outcomes, "done"),
                blocked=[
                    *_with_status(outcomes, "blocked"),
                    *(outcome.task_id for outcome in given_up),
                ],
                interrupted=[
                    outcome.task_id
                    for outcome in outcomes
                    if outcome.status in ("interrupted", "failed") and outcome not in given_up
                ],
                review_failures=rejected,
                tokens=spent,
                next_size=self._size.size,
            )

        await self._store.write(record)

    async def _run_task(self, task_id: str, outcomes: list[TaskOutcome]) -> TaskOutcome:
        """Run one task. An error ends this task only, not the other tasks of the batch."""
        context = replace(self._context, must_hand_over=partial(self._meter.before_step, task_id))
        try:
            outcome = await self._dispatcher.run(context, task_id)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if task_id not in self.heartbeat.lost or current is None:
                raise
            current.uncancel()
            outcome = TaskOutcome(
                task_id, "interrupted", "another process claimed it", reason="elsewhere"
            )
        except Exception as error:
            home = self._context.place.home
            if reason := outage_reason(error, home):
                message = describe_outage(error, home)
                outcome = TaskOutcome(task_id, "interrupted", message, reason=reason)
            else:
                message = f"{type(error).__name__}: {error}"
                outcome = TaskOutcome(task_id, "failed", message, reason="error")
        outcomes.append(outcome)
        if outcome.reason == "elsewhere":
            self._skipped.add(task_id)
        self._report(outcome)
        return outcome

    def _report(self, outcome: TaskOutcome) -> None:
        state = {
            "done": "is done",
            "blocked": "is blocked",
            "interrupted": "is paused",
            "failed": "broke off and keeps its work",
        }[outcome.status]
        self._say(f"{outcome.task_id} {state}: {one_line(outcome.summary)}")

    def _failed_too_often(self, outcome: TaskOutcome) -> bool:
        if outcome.status == "failed":
            self._failures[outcome.task_id] += 1
        return outcome.status == "failed" and self._failures[outcome.task_id] >= MAX_FAILURES

    def _seconds_until_retry(self, connection: sqlite3.Connection) -> float:
        now = format_time(self._store.clock.now())
        return seconds_until_retry(connection, self._chain, now, self._skipped)

    def _conflicting_tasks(self, connection: sqlite3.Connection) -> tuple[list[str], bool]:
        """The tasks that the ready ones conflict with, and whether any of them is running."""
        holders = queue_scope.select_blocking(connection, scope_of(self._chain))
        now = format_time(self._store.clock.now())
        return holders, any(
            is_being_done(connection, self._chain, task_id, now) for task_id in holders
        )

    async def _pause(self, seconds: float) -> None:
        """Wait so long, or until the worker is to stop."""
        waits = [
            asyncio.ensure_future(self._store.clock.sleep(seconds)),
            asyncio.ensure_future(self._context.stop.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def _delay(tx: Tx, outcome: TaskOutcome, failures: int) -> None:
    """Let a task that broke off wait; one without a step in progress starts like a new one."""
    steps = task_runs.select_steps(tx.connection, outcome.task_id)
    if steps and steps[-1].open:
        retry_delays.delay_step(tx, steps[-1], failures, outcome.summary)


def _block(tx: Tx, outcome: TaskOutcome) -> None:
    reason = f"It broke off {MAX_FAILURES} times for a reason outside the task: {outcome.summary}"
    reason = reason[: handoffs.MOST_SUMMARY]
    handoffs.set_handoff(tx, outcome.task_id, "BLOCKED", reason, by=_BY)
    service.block(tx, outcome.task_id, reason, by=_BY)


def _with_status(outcomes: Sequence[TaskOutcome], status: str) -> list[str]:
    return [outcome.task_id for outcome in outcomes if outcome.status == status]

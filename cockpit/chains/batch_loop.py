"""One session of a chain: batch after batch of its scope, until it has to make room or nothing is left.

What it holds of a task is how it ended, in a line: it does not grow with what was done. Source: seed
004, solutions 6 and 7; design of work, "Batches" and "Chains".
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cockpit.backlog import service
from cockpit.chains.batch_size import batch_size, outcome_of
from cockpit.chains.claim_batch import ClaimedTask, claim_batch
from cockpit.chains.handover import WorkerLimits, WorkerUsage
from cockpit.chains.heartbeat import LOOK_S, Heartbeat
from cockpit.chains.unfinished import has_work, is_being_done, scope_of
from cockpit.chains.usage import UsageMeter
from cockpit.core.clock import format_time
from cockpit.learn.resume_line import one_line
from cockpit.store.backlog import handoffs, queue_scope
from cockpit.store.chains import task_leases, worker_metrics
from cockpit.store.chains.chains import Chain
from cockpit.store.db.transaction import Tx
from cockpit.tasks.model_outage import WAIT_S, Outage
from cockpit.tasks.run_task import run_task
from cockpit.tasks.task_context import TaskContext, TaskOutcome

MOST_FAILURES = 2
"""How often a task may break off for a reason of ours in one session before it is blocked by it."""

_BY = "engine"


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How a session ended. ``reason``: ``pressure``, ``quota`` (of batches), ``limit`` (of cost or
    time), ``drained``, ``empty``, ``held`` (what is ready meets what somebody else has under way), or
    ``no model: WHY``.
    ``passed`` names the measure of pressure that passed its limit. ``interrupted`` counts tasks that
    were put down under way."""

    reason: str
    tokens: int
    dropped_share: float
    batches: int
    tasks_done: int
    tasks_blocked: int
    interrupted: int
    cost_usd: float
    passed: str = ""


async def run_batches(
    desk: TaskContext,
    chain: Chain,
    ordinal: int,
    *,
    quota: WorkerLimits,
    say: Callable[[str], None],
) -> WorkerEnd:
    """Do tasks of the chain's scope as its session of that ordinal, whose row is there.

    ``say`` is given lines for a person. ``desk.stop`` lets it come to rest; cancelled, it leaves every
    task where it stands. Raises ``IllegalTransition`` when the session was given up for dead,
    ``BatchInvalid``, and the store's errors.
    """
    session = _Session(desk, chain, ordinal, quota, say)
    try:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(session.keeper.watch())
            reason = await session.batches()
            watch.cancel()
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    return session.ended(reason)


class _Session:
    """What :func:`run_batches` keeps."""

    def __init__(
        self,
        desk: TaskContext,
        chain: Chain,
        ordinal: int,
        quota: WorkerLimits,
        say: Callable[[str], None],
    ) -> None:
        self._desk = desk
        self._store = desk.store
        self._chain = chain
        self._ordinal = ordinal
        self._quota = quota
        self._say = say
        self._size = batch_size(chain.batch)
        self._meter = UsageMeter(desk.store, quota, chain.chain_id, ordinal)
        self.keeper = Heartbeat(desk.store, chain, ordinal, self._meter, say)
        self._counts: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._skipped: set[str] = set()
        self._pressed = False
        self._outage = Outage()

    def ended(self, reason: str) -> WorkerEnd:
        """The session's sums."""
        pressure = self._meter.pressure()
        return WorkerEnd(
            reason,
            pressure.tokens,
            pressure.dropped_share,
            self.keeper.batches,
            self._counts["done"],
            self._counts["blocked"],
            self._counts["interrupted"] + self._counts["failed"],
            pressure.cost_usd,
            pressure.passed if reason == "pressure" else "",
        )

    async def batches(self) -> str:
        """Batch after batch; returns why there is no other."""
        told, idle = False, 0
        while True:
            now = format_time(self._store.clock.now())
            if not self._store.read_now(
                lambda found, now=now: has_work(found, self._chain, now, self._skipped)  # type: ignore[misc]  # a default keeps the loop's value
            ):
                return "empty"
            if reason := self._resting():
                return reason
            taken = await self._store.write(
                lambda tx: claim_batch(
                    tx,
                    self._chain,
                    self._ordinal,
                    batch=self.keeper.batches + 1,
                    size=self._size.size,
                    skipped=self._skipped,
                )
            )
            if taken:
                self._outage = self._outage.after(await self._do(taken))
                if self._outage.ends:
                    return self._outage.ends
                if self._outage.batches:
                    self._say(f"{self._outage.words} It is tried again in {WAIT_S:.0f} s.")
                    await self._pause(WAIT_S)
                told, idle = False, 0
                continue
            holders, coming = self._store.read_now(self._holders)
            if not told and holders:
                told = True
                self._say(f"What is ready touches what {' and '.join(holders)} changes.")
            # Looked at twice: between one look and the other, what holds it may just have ended.
            idle = 0 if coming else idle + 1
            if idle == 2:
                return "held"
            await self._pause(LOOK_S)

    async def _do(self, taken: Sequence[ClaimedTask]) -> list[TaskOutcome]:
        """One batch, from its first step to its last row; how its tasks ended."""
        self.keeper.batches += 1
        size = self._size.size
        names = ", ".join(one.task_id for one in taken)
        self._say(f"Batch {self.keeper.batches}: {names} (room for {size}).")
        outcomes: list[TaskOutcome] = []
        for one in taken:
            self._meter.begin(one.task_id)
        try:
            async with asyncio.TaskGroup() as group:
                for one in taken:
                    if one.resuming:
                        self._say(one.resuming)
                    doing = group.create_task(self._one(one.task_id, outcomes))
                    self.keeper.keep(one, doing)
        except asyncio.CancelledError:
            over = {one.task_id for one in outcomes}
            outcomes += [
                TaskOutcome(one.task_id, "interrupted", "stopped", reason="stopped")
                for one in taken
                if one.task_id not in over
            ]
            await self._end(taken, outcomes, size)
            raise
        await self._end(taken, outcomes, size)
        return outcomes

    async def _end(
        self, taken: Sequence[ClaimedTask], outcomes: Sequence[TaskOutcome], size: int
    ) -> None:
        """Count the batch, and give its tasks back."""
        self.keeper.let_go()
        spent = rejected = 0
        for one in taken:
            tokens, verdicts = self._meter.end(one.task_id)
            spent, rejected = spent + tokens, rejected + verdicts
        outcome = outcome_of(one.status for one in outcomes)
        self._size = self._size.after(outcome)
        blocked = [one for one in outcomes if self._blocks(one)]

        def ended(tx: Tx) -> None:
            for one in blocked:
                _block(tx, one)
            for held in taken:
                task_leases.release(tx, held.task_id, held.token)
            self.keeper.beat(tx)
            worker_metrics.record_batch_end(
                tx,
                self._chain,
                self._ordinal,
                batch=self.keeper.batches,
                size=size,
                # A task that is blocked is a result: the batch came to its end.
                outcome="completed" if outcome == "blocked" else outcome,
                done=_of(outcomes, "done"),
                blocked=[*_of(outcomes, "blocked"), *(one.task_id for one in blocked)],
                interrupted=[
                    one.task_id
                    for one in outcomes
                    if one.status in ("interrupted", "failed") and one not in blocked
                ],
                review_failures=rejected,
                tokens=spent,
                next_size=self._size.size,
            )

        await self._store.write(ended)
        self._counts.update("blocked" if one in blocked else one.status for one in outcomes)

    async def _one(self, task_id: str, outcomes: list[TaskOutcome]) -> TaskOutcome:
        """Do one task. Whatever goes wrong with it is its own: the others of its batch go on."""
        desk = replace(self._desk, pressed=partial(self._rests, task_id))
        try:
            ended = await run_task(desk, task_id)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if task_id not in self.keeper.lost or current is None:
                raise
            current.uncancel()
            ended = TaskOutcome(
                task_id, "interrupted", "another process took it", reason="elsewhere"
            )
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            ended = TaskOutcome(task_id, "failed", words, reason="error")
        outcomes.append(ended)
        if ended.reason == "elsewhere":
            self._skipped.add(task_id)
        self._tell(ended)
        return ended

    def _tell(self, ended: TaskOutcome) -> None:
        words = one_line(ended.summary)
        told = {
            "done": f"{ended.task_id} is done: {words}",
            "blocked": f"{ended.task_id} is blocked: {words}",
            "interrupted": f"{ended.task_id} rests, {words}",
            "failed": f"{ended.task_id} broke off and is kept as it is: {words}",
        }
        self._say(told[ended.status])

    def _blocks(self, ended: TaskOutcome) -> bool:
        """Whether the task broke off too often to be taken up again."""
        if ended.status == "failed":
            self._failures[ended.task_id] += 1
        return ended.status == "failed" and self._failures[ended.task_id] >= MOST_FAILURES

    def _rests(self, task_id: str) -> bool:
        """Asked before each step of a task: whether the session is too full for it."""
        pressure = self._meter.measure(task_id)
        return bool(self._full(pressure, pressure.at_once))

    def _resting(self) -> str:
        """Why no batch is begun; empty while one may be."""
        if self._desk.stop.is_set():
            return "drained"
        pressure = self._meter.pressure()
        if reason := self._full(pressure, pressure.reason):
            return reason
        return (
            "quota"
            if self._quota.batches is not None and self.keeper.batches >= self._quota.batches
            else ""
        )

    def _full(self, pressure: WorkerUsage, reason: str) -> str:
        if reason and not self._pressed:
            self._pressed = True
            what = (
                "Context pressure" if reason == "pressure" else "The chain's limit of cost or time"
            )
            self._say(f"{what}: {pressure.words()}. The session rests after the steps under way.")
        return reason

    def _holders(self, connection: sqlite3.Connection) -> tuple[list[str], bool]:
        """What keeps the ready tasks waiting, and whether somebody is at it."""
        found = queue_scope.select_blocking(connection, scope_of(self._chain))
        now = format_time(self._store.clock.now())
        return found, any(is_being_done(connection, self._chain, one, now) for one in found)

    async def _pause(self, seconds: float) -> None:
        """Wait, no longer than until the session is to stop."""
        waits = [
            asyncio.ensure_future(self._store.clock.sleep(seconds)),
            asyncio.ensure_future(self._desk.stop.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()


def _block(tx: Tx, ended: TaskOutcome) -> None:
    reason = (
        f"It broke off {MOST_FAILURES} times for a reason that is not the task's: {ended.summary}"
    )
    reason = reason[: handoffs.MOST_SUMMARY]
    handoffs.set_handoff(tx, ended.task_id, "BLOCKED", reason, by=_BY)
    service.block(tx, ended.task_id, reason, by=_BY)


def _of(outcomes: Sequence[TaskOutcome], status: str) -> list[str]:
    return [one.task_id for one in outcomes if one.status == status]

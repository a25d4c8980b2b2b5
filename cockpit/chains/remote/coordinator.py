"""The coordinator: it puts the tasks of a chain into the queue, and merges what workers send back.

Its store stays the truth. It may die at any moment: runs wait in the queue or go on at their workers, results
wait in the queue, and the chain's next process takes them over. Whatever it does for one task takes the same
time with one worker as with a thousand. Specified in ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import secrets
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from cockpit.backlog import service
from cockpit.backlog.user_decision import USER_DECISIONS, user_decision
from cockpit.chains.remote.cancel_surely import end_coroutines
from cockpit.chains.remote.jetstream_queue import (
    MessageQueue,
    QueueUnreachable,
    RunTooLarge,
    open_queue,
)
from cockpit.chains.remote.merge_remote_work import ResultRefused, take_over
from cockpit.chains.remote.message_types import (
    BackMessage,
    Claim,
    ClaimAnswer,
    DecisionMessage,
    JournalRows,
    MessageEarly,
    MessageInvalid,
    ProposalNotice,
    RunMessage,
    RunResult,
    base_branch,
    decode,
    encode,
)
from cockpit.chains.remote.remote_proposals import (
    DecisionSender,
    close_session,
    open_session,
    show_proposal,
)
from cockpit.chains.remote.run_message import describe_run
from cockpit.chains.remote.scale_settings import ScaleSettings
from cockpit.chains.remote.shared_repository import ask_shared, remove_merged, remove_shared
from cockpit.core.errors import (
    AlreadyDecided,
    Altered,
    IllegalTransition,
    NotFound,
    Stale,
    StoreError,
)
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.backlog import tasks, wip
from cockpit.store.chains import remote_runs, task_runs
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.remote_runs import RemoteRun
from cockpit.store.chains.task_runs import ENDS, Step
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.export_rows import verify_continuation
from cockpit.tasks.finish_task import SetAside, raise_if_set_aside
from cockpit.tasks.git import WorktreeError, commit_of, shared_git
from cockpit.tasks.merging import prepare_chain_branch
from cockpit.tasks.outage import is_outage
from cockpit.tasks.run_task import run_task
from cockpit.tasks.task_context import TaskContext, TaskOutcome

MOST_ROW_NUMBER = 2**53
"""The highest number that a worker's row may have."""
SET_ASIDE_S = 1.0
"""Seconds between two looks at tasks that the user ended while a worker does them."""
LOOK_S = 0.25
"""Seconds between two looks at results that another process received."""
_BY = "engine"
_STOP = DecisionMessage("", "", "stop")
_PAUSED = ("drained", "elsewhere", SetAside.code)
"""Reasons of a run that a worker paused, and that goes back into the queue at once."""


@asynccontextmanager
async def open_coordinator(
    scale: ScaleSettings, context: TaskContext, chain: Chain, say: Callable[[str], None]
) -> AsyncIterator[Coordinator]:
    """Connect to the queue and receive what workers send, within the block.

    Raises :class:`~cockpit.chains.remote.jetstream_queue.QueueUnreachable`.
    """
    async with AsyncExitStack() as stack:
        queue = await stack.enter_async_context(open_queue(scale, name=chain.chain_id))
        await queue.prepare(await asyncio.to_thread(_project_name, context.place))
        coordinator = Coordinator(scale, context, chain, queue, say)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        working = [
            group.create_task(coordinator.receive()),
            group.create_task(coordinator.look_for_results()),
            group.create_task(coordinator.look_for_lost_runs()),
            group.create_task(coordinator.look_for_set_aside()),
            group.create_task(DecisionSender(context.store, queue, say).run()),
        ]
        await stack.enter_async_context(
            queue.answer(queue.subjects.claim, coordinator.answer_claim, group="coordinators")
        )
        say(f"Workers join with: cockpit worker --connect {scale.address_for_people} --git ADDRESS")
        try:
            yield coordinator
            await remove_shared(context, scale.git, chain.chain_id)
        finally:
            await end_coroutines(working)


class Coordinator:
    """The dispatcher of a chain whose tasks workers of any machine do."""

    def __init__(
        self,
        scale: ScaleSettings,
        context: TaskContext,
        chain: Chain,
        queue: MessageQueue,
        say: Callable[[str], None],
    ) -> None:
        self._scale = scale
        self._context = context
        self._place = context.place
        self._store = context.store
        self._chain = chain
        self._queue = queue
        self._say = say
        self._pushed = ""
        self._pushing = asyncio.Lock()
        self._waiting: dict[tuple[str, int], asyncio.Event] = {}
        self._deliveries: dict[tuple[str, int], tuple[int, int]] = {}
        """The newest delivery of each run that a worker took up."""

    @property
    def at_once(self) -> int | None:
        """The most runs in the queue and with workers."""
        return self._scale.at_once

    # One task

    async def run(self, context: TaskContext, task_id: str) -> TaskOutcome:
        """Have a worker do the task, then merge it here; a task that began here goes on here."""
        store = self._store
        task = store.read_now(lambda c: tasks.load(c, task_id))
        steps = store.read_now(lambda c: task_runs.select_steps(c, task_id))
        run = _run_of(steps)
        remote = store.read_now(lambda c: remote_runs.find(c, task_id, run))
        begun = [step for step in steps if step.run == run]
        is_here = bool(begun) and (remote is None or remote.state == "taken")
        if is_here or task.status in ("done", "archived"):
            return await run_task(context, task_id)
        if remote is None or remote.state in ("withdrawn", "sent"):
            if context.should_stop():
                return TaskOutcome(
                    task_id, "interrupted", "stopped before it was sent", reason="drained"
                )
            try:
                remote = await self._send(context, task_id, run)
            except SetAside as error:
                return TaskOutcome(task_id, "interrupted", str(error), reason=error.code)
        remote = await self._wait(context, remote)
        if remote.state != "returned":
            return self._taken_out(task_id)
        return await self._merge(context, remote)

    def _taken_out(self, task_id: str) -> TaskOutcome:
        """The outcome of a run that no worker had when the chain drained, or the user ended the task."""
        if decision := self._store.read_now(lambda c: user_decision(c, task_id)):
            words = f"{task_id} was {USER_DECISIONS[decision]} while it was in the queue"
            return TaskOutcome(task_id, "interrupted", words, reason=SetAside.code)
        return TaskOutcome(task_id, "interrupted", "taken out of the queue", reason="drained")

    async def _send(self, context: TaskContext, task_id: str, run: int) -> RemoteRun:
        """Put the run into the queue, from the chain's branch as it is now."""
        chain = await prepare_chain_branch(context, task_id)
        base = await self._push_base(Path(chain.path))
        message = self._store.read_now(
            lambda c: describe_run(
                c, context, task_id, run, base, base_branch(self._chain.chain_id)
            )
        )
        is_new = self._store.read_now(lambda c: remote_runs.find(c, task_id, run)) is None
        remote = await self._store.write(lambda tx: self._begin(tx, context, task_id, run, base))
        try:
            if is_new:  # the queue cannot have it, nor its result
                await self._queue.send_run(self._queue.subjects.run(task_id, run), message)
            else:
                await self._put(remote, message)
        except QueueUnreachable as error:
            self._say(f"{task_id} goes into the queue once the server answers. {error}")
        return remote

    def _begin(self, tx: Tx, context: TaskContext, task_id: str, run: int, base: str) -> RemoteRun:
        """Begin the run's first step, which is a worker's; the store has it before the queue has."""
        raise_if_set_aside(tx, task_id)
        steps = task_runs.select_steps(tx.connection, task_id)
        where: dict[str, Any] = {"chain_id": context.chain_id, "ordinal": context.ordinal}
        if steps and steps[-1].run == run:
            task_runs.resume(tx, steps[-1], **where)
        else:
            task_runs.begin(tx, task_id, run, "implement", **where)
        service.set_status(tx, task_id, "in_progress", by=_BY)
        progress = {"phase": "implementing", "next_step": "wait for a worker of another machine"}
        wip.update(tx, task_id, progress, by=_BY)
        return remote_runs.send(tx, task_id, run, base)

    async def _put(self, remote: RemoteRun, message: RunMessage) -> None:
        """Put a run into the queue unless it is there, or its result is."""
        names = self._queue.subjects
        subject = names.run(remote.task_id, remote.run)
        # A worker sends its result before its run leaves the queue: in this order neither is overlooked.
        if await self._queue.holds(names.runs_stream, subject):
            return
        if await self._queue.holds(names.back_stream, names.back(remote.task_id, "result")):
            return
        if self._load(remote).state not in remote_runs.UNDER_WAY:
            return
        await self._queue.send_run(subject, message)

    async def _push_base(self, chain: Path) -> str:
        """Put the chain's commit where workers get it; return it."""
        async with self._pushing:
            commit = await commit_of(chain, "HEAD")
            if commit is None:
                raise WorktreeError(f"{chain} has no commit that workers can begin at.")
            if commit != self._pushed:
                branch = base_branch(self._chain.chain_id)
                named = f"{commit}:refs/heads/{branch}"
                words = ("push", "--quiet", "--force", self._scale.git, named)
                if self._pushed:
                    await ask_shared(self._store.clock, chain, *words)
                else:  # what never worked is told at once
                    await shared_git(chain, *words)
                self._pushed = commit
            return commit

    async def _wait(self, context: TaskContext, remote: RemoteRun) -> RemoteRun:
        """Wait for the result. When the chain drains, a run that no worker has is taken out again."""
        key = (remote.task_id, remote.run)
        has_result = self._waiting.setdefault(key, asyncio.Event())
        stopping = asyncio.ensure_future(context.stop.wait())
        returning = asyncio.ensure_future(has_result.wait())
        try:
            await asyncio.wait((stopping, returning), return_when=asyncio.FIRST_COMPLETED)
            if not has_result.is_set() and await self._take_out(remote):
                return self._load(remote)
            await returning
            return self._load(remote)
        finally:
            stopping.cancel()
            returning.cancel()
            self._waiting.pop(key, None)
            self._deliveries.pop(key, None)

    async def _take_out(self, remote: RemoteRun) -> bool:
        """Take a run out of the queue; where a worker has it, ask that to end after its step."""
        names, task_id, run = self._queue.subjects, remote.task_id, remote.run
        if await self._store.write(lambda tx: remote_runs.withdraw(tx, task_id, run)):
            with suppress(QueueUnreachable):  # a worker that gets it all the same is refused
                number = await self._queue.holds(names.runs_stream, names.run(task_id, run))
                if number:
                    await self._queue.remove(names.runs_stream, number)
            return True
        is_said = False
        while (current := self._load(remote)).state == "claimed":
            try:
                await self._queue.request(names.decide(task_id, run, current.fence), encode(_STOP))
                break
            except QueueUnreachable as error:  # it may not have its clone yet
                if not is_said:
                    self._say(f"{task_id}: {current.worker} does not answer yet. {error}")
                is_said = True
            await self._store.clock.sleep(SET_ASIDE_S)
        return False

    async def _merge(self, context: TaskContext, remote: RemoteRun) -> TaskOutcome:
        """Take the worker's steps and branch over, and go on here; an unfinished run goes back."""
        task_id, run = remote.task_id, remote.run
        status = remote.result.get("status")
        words = str(remote.result.get("summary", ""))
        if status == "ready":
            try:
                outcome = await take_over(context, self._scale.git, remote)
                if outcome.status == "done":
                    await remove_merged(context, remote)
                return outcome
            except ResultRefused as error:
                status, words = "failed", str(error)
        await self._store.write(lambda tx: remote_runs.give_back(tx, task_id, run))
        reason = str(remote.result.get("reason", ""))
        # A step that broke off there was counted in a store that is gone: it counts and waits here.
        paused = status == "interrupted" and (is_outage(reason) or reason in _PAUSED)
        ended = "interrupted" if paused else "failed"
        return TaskOutcome(
            task_id, ended, words, remote.tokens, remote.cost_usd or 0.0, reason=reason or ended
        )  # fmt: skip

    def _load(self, remote: RemoteRun) -> RemoteRun:
        return self._store.read_now(lambda c: remote_runs.load(c, remote.task_id, remote.run))

    # What workers send

    async def answer_claim(self, data: bytes) -> bytes:
        """Give a run to the worker that asks, under the next number."""
        claim = decode(Claim, data)
        key, delivery = (claim.task_id, claim.run), (claim.message, claim.delivery)
        if delivery < self._deliveries.get(key, (0, 0)):
            # Late by a lost connection: by now the server has given the run to another worker.
            raise MessageInvalid(f"{claim.worker} asks late for {claim.task_id}.")

        def give(tx: Tx) -> int:
            fence = remote_runs.claim(tx, claim.task_id, claim.run, claim.worker)
            if fence:
                open_session(tx, self._place, claim.task_id, claim.worker, self._chain.approve)
            return fence

        fence = await self._store.write(give)
        if fence:
            if key in self._waiting:
                self._deliveries[key] = max(delivery, self._deliveries.get(key, (0, 0)))
            again = f", time {fence}" if fence > 1 else ""
            self._say(f"{claim.task_id} is with {claim.worker}{again}.")
        return encode(ClaimAnswer(fence))

    async def receive(self) -> None:
        """Store what workers send, for ever; of the chains on one queue a single process does."""
        path = self._place.state / f"queue-{self._scale.queue}.lock"
        lock = await asyncio.to_thread(os.open, path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not _is_locked(lock):
                await self._store.clock.sleep(LOOK_S)
            await self._queue.receive_back(self._handle, self._say_invalid)
        finally:
            os.close(lock)

    async def _handle(self, message: BackMessage) -> None:
        try:
            await self._store_message(message)
        except MessageEarly:
            raise
        except (NotFound, IllegalTransition, AlreadyDecided, Stale, Altered) as error:
            self._say_invalid(str(error))  # of the store's errors, those that a message can cause
        except (StoreError, sqlite3.OperationalError):
            raise  # it stays in the queue, for a process that can store it
        except Exception as error:  # whatever a worker sends, it ends that message and nothing else
            self._say_invalid(str(error) or type(error).__name__)

    async def _store_message(self, message: BackMessage) -> None:
        match message:
            case RunResult():
                if await self._store.write(lambda tx: _record_result(tx, message)):
                    self._wake(message.task_id, message.run)
            case JournalRows():
                await self._store.write(lambda tx: _record_rows(tx, message))
            case ProposalNotice():
                await self._store.write(lambda tx: show_proposal(tx, message, self._place))

    def _wake(self, task_id: str, run: int) -> None:
        if (event := self._waiting.get((task_id, run))) is not None:
            event.set()

    def _say_invalid(self, why: str) -> None:
        self._say(f"A message of a worker was thrown away: {why}")

    async def look_for_results(self) -> None:
        """Wake runs whose result another process received, until cancelled."""
        while True:
            if self._waiting:
                for key in self._store.read_now(remote_runs.select_returned):
                    self._wake(*key)
            await self._store.clock.sleep(LOOK_S)

    async def look_for_set_aside(self) -> None:
        """End runs whose task the user blocked, archived or finished, until cancelled."""
        ending: set[tuple[str, int]] = set()
        async with asyncio.TaskGroup() as group:
            while True:
                await self._store.clock.sleep(SET_ASIDE_S)
                ended = self._store.read_now(remote_runs.select_ended) if self._waiting else ()
                for key in {*ended} & {*self._waiting} - ending:
                    group.create_task(self._end_set_aside(*key))
                ending = {*ended}  # a task that was reopened can be set aside again

    async def _end_set_aside(self, task_id: str, run: int) -> None:
        if not self._store.read_now(lambda c: user_decision(c, task_id)):
            return
        remote = self._store.read_now(lambda c: remote_runs.load(c, task_id, run))
        if await self._take_out(remote):
            self._wake(task_id, run)

    async def look_for_lost_runs(self) -> None:
        """Put runs into the queue again that the server lost, once in two leases, until cancelled."""
        while True:
            await self._store.clock.sleep(2 * self._scale.lease_s)
            await self._put_lost_runs()

    async def _put_lost_runs(self) -> None:
        """Put runs into the queue again that are neither there nor back.

        A word of a worker about an earlier delivery, late by a lost connection, takes a run out that another
        worker has by then; should that one die, nobody would get it.
        """
        try:
            held, names = await self._queue.list_runs(), self._queue.subjects
            back = await self._queue.list_results()
            for task_id, run in tuple(self._waiting):
                is_back = names.back(task_id, "result") in back
                if names.run(task_id, run) not in held and not is_back:
                    await self._put_lost_run(task_id, run)
        except QueueUnreachable:
            return  # the next look comes

    async def _put_lost_run(self, task_id: str, run: int) -> None:
        remote = self._store.read_now(lambda c: remote_runs.load(c, task_id, run))
        if remote.state not in remote_runs.UNDER_WAY:
            return
        message = self._store.read_now(lambda c: self._describe(c, remote))
        try:
            await self._put(remote, message)
        except RunTooLarge as error:
            self._say(str(error))

    def _describe(self, connection: sqlite3.Connection, remote: RemoteRun) -> RunMessage:
        branch = base_branch(self._chain.chain_id)
        named = (remote.task_id, remote.run, remote.base_commit)
        return describe_run(connection, self._context, *named, branch)


def _project_name(place: ProjectPaths) -> str:
    """Return the name by which the queue knows this project: drawn once, kept beside its store."""
    path = place.state / "queue-owner"
    fresh = place.state / f"queue-owner.{os.getpid()}"
    if not path.exists():
        fresh.write_text(secrets.token_hex(16))
        with suppress(FileExistsError):  # another process was first
            os.link(fresh, path)
        fresh.unlink()
    return path.read_text().strip()


def _run_of(steps: list[Step]) -> int:
    """Return the number of the task's current run, or of its next one."""
    if not steps:
        return 1
    return steps[-1].run + (steps[-1].step in ENDS and not steps[-1].open)


def _is_locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _record_result(tx: Tx, result: RunResult) -> bool:
    """Store a result; return whether it counts."""
    body = msgspec.to_builtins(result)
    named = (result.task_id, result.run, result.fence, result.worker)
    last = remote_runs.last_row(tx.connection, *named[:3])
    if result.last_row > (last[0] if last else 0) and remote_runs.is_held(tx.connection, *named):
        raise MessageEarly(f"The result of {result.task_id} came before rows of its journal.")
    counts = remote_runs.record_result(tx, *named, body)
    if counts:
        close_session(tx, result.task_id, result.status, result.summary)
    return counts


def _record_rows(tx: Tx, message: JournalRows) -> None:
    """Store rows that follow from those before them; what came twice is passed over."""
    task_id, run, fence = message.task_id, message.run, message.fence
    remote = remote_runs.load(tx.connection, task_id, run)
    if (remote.fence, remote.worker) != (fence, message.worker):
        remote_runs.journal_void(tx, task_id, run, fence, message.worker, "rows")
        return
    last = remote_runs.last_row(tx.connection, task_id, run, fence)
    if message.after > (last[0] if last else 0):
        raise MessageEarly(f"Rows of {task_id} came before those that they follow.")
    try:
        bodies = [(json.loads(line), line) for line in message.lines]
        # Without a digest it is a fragment of text, which the chain does not have.
        rows = [(int(body["seq"]), line) for body, line in bodies if body["digest"]]
        rows = [(seq, line) for seq, line in rows if last is None or seq > last[0]]
        if not rows:
            return
        digest = verify_continuation(last[1] if last else None, [line for _, line in rows])
        if rows[-1][0] > MOST_ROW_NUMBER:
            raise ValueError("a row has a number that no journal has")
    except (ValueError, KeyError, TypeError, RecursionError):
        remote_runs.journal_void(tx, task_id, run, fence, message.worker, "rows")
        return
    remote_runs.add_rows(tx, task_id, run, fence, message.worker, rows, digest)

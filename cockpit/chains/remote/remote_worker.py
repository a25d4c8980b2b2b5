"""A worker of another machine: it takes runs from the queue, does them, and sends back what it did.

Each run has a clone, a store and a journal of its own, which are removed when the result is in the queue. A
worker that dies loses the run: another one gets it after the lease, under the next number, and what the first
one still sends is void. Specified in ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.chains.remote.cancel_surely import end_coroutines
from cockpit.chains.remote.jetstream_queue import (
    MessageQueue,
    QueueUnreachable,
    fetch,
    read_run,
)
from cockpit.chains.remote.message_types import (
    BackMessage,
    Claim,
    ClaimAnswer,
    MessageInvalid,
    RunMessage,
    RunResult,
    decode,
    encode,
)
from cockpit.chains.remote.remote_run import RunNotBegun, RunPlace, WorkerSetup, do_run
from cockpit.core.errors import find_machine_fault
from cockpit.tasks.git import shared_git

if TYPE_CHECKING:
    from nats.aio.msg import Msg

_TRY_AGAIN_S = 1.0
_FETCH_S = 1.0
_LONGEST_WAIT_S = 30.0


class RemoteWorker:
    """Takes runs until it is stopped."""

    def __init__(self, queue: MessageQueue, setup: WorkerSetup, say: Callable[[str], None]) -> None:
        self._queue = queue
        self._setup = setup
        self._say = say
        self.stop = asyncio.Event()
        """When set, running steps finish, their results are sent, and no further run is taken."""

    async def check(self) -> None:
        """Raise ``WorktreeError`` where the shared repository cannot be read."""
        await shared_git(self._setup.folder, "ls-remote", "--quiet", self._setup.repository, "HEAD")

    async def work(self) -> None:
        """Take runs and do them, until :attr:`stop` is set. Cancelled, it leaves its runs to others."""
        await asyncio.to_thread(self._remove_old_runs)
        slots = [asyncio.ensure_future(self._work_on_slot()) for _ in range(self._setup.slots)]
        try:
            await asyncio.gather(*slots)
        finally:
            await end_coroutines(slots)
            await asyncio.gather(*slots, return_exceptions=True)

    async def _work_on_slot(self) -> None:
        """Do one run after the other."""
        source = await self._queue.take_runs()
        while not self.stop.is_set():
            for message in await fetch(source, 1, _FETCH_S):
                await self._handle(message)

    async def _pause(self, seconds: float) -> None:
        """Wait so long, or until the worker is to stop."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stop.wait(), seconds)

    async def _handle(self, message: Msg) -> None:
        """Claim a run, do it, and send its result; the run leaves the queue after that."""
        try:
            run = read_run(message.data)
        except MessageInvalid as error:
            self._say(f"A run was thrown away: {error}")
            await self._queue.settle(message, "done")
            return
        fence = await self._claim(run, message)
        if fence is None:
            await self._queue.settle(message, "again")  # no coordinator is there
            return
        if fence == 0:
            await self._queue.settle(message, "done")  # it is over
            return
        self._say(f"{run.task_id} starts (run {run.run}, number {fence}).")
        try:
            async with self._kept_alive(message):
                result = await self._do(run, fence)
                await self._send(result, "result")
        except RunNotBegun as error:
            self._say(f"{run.task_id} goes back into the queue. {error}")
            await self._queue.settle(message, "again")
            await self._pause(_LONGEST_WAIT_S)  # others may reach the repository
            return
        await self._queue.settle(message, "done")
        self._say(f"{run.task_id}: {result.status}. {result.summary[:200]}")

    async def _claim(self, run: RunMessage, message: Msg) -> int | None:
        counts = message.metadata
        number, delivery = counts.sequence.stream, counts.num_delivered
        claim = Claim(run.task_id, run.run, self._setup.name, number, delivery)
        try:
            answer = await self._queue.request(self._queue.subjects.claim, encode(claim))
            return decode(ClaimAnswer, answer).fence
        except (QueueUnreachable, MessageInvalid):
            return None

    async def _do(self, run: RunMessage, fence: int) -> RunResult:
        """Do the run; an error of this machine is the run's result."""
        folder = self._runs / f"{run.task_id}-{run.run}-{fence}"
        place = RunPlace(folder, self._mirror, self._setup.repository)
        try:
            return await do_run(run, fence, place, self._setup, self._queue, self._send, self.stop)
        except RunNotBegun:
            raise
        except Exception as error:  # whatever a run holds, it ends that run and not the worker
            if fault := find_machine_fault(error):
                raise RunNotBegun(f"This machine has no room: {fault}") from error
            summary = (str(error) or type(error).__name__)[:2_000]
            return RunResult(
                task_id=run.task_id, run=run.run, fence=fence, worker=self._setup.name,
                status="failed", summary=summary, reason=getattr(error, "code", "error"),
            )  # fmt: skip
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _send(self, message: BackMessage, kind: str) -> None:
        """Send something to the coordinator, as often as it takes: nothing is lost with a connection."""
        wait_s = _TRY_AGAIN_S
        while True:
            try:
                await self._queue.send_back(kind, message)
            except QueueUnreachable as error:
                self._say(f"{message.task_id}: the {kind} waits. {error}")
                await self._setup.clock.sleep(wait_s)
                wait_s = min(_LONGEST_WAIT_S, 2 * wait_s)
            else:
                return

    @asynccontextmanager
    async def _kept_alive(self, message: Msg) -> AsyncIterator[None]:
        """Tell the server that the run goes on, three times in a lease."""

        async def renew() -> None:
            while True:
                await self._setup.clock.sleep(self._queue.lease_s / 3)
                await self._queue.settle(message, "alive")

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            await end_coroutines([renewing])

    @property
    def _runs(self) -> Path:
        return self._setup.folder / "runs"

    @property
    def _mirror(self) -> Path:
        return self._setup.folder / "mirror.git"

    def _remove_old_runs(self) -> None:
        """Remove what a worker that died here left: its runs are others' by now."""
        shutil.rmtree(self._runs, ignore_errors=True)
        self._runs.mkdir(parents=True, mode=0o700)

"""Looking after a session while its tasks are done: it says that it lives, keeps their leases, and tells
what waits for a person. Source: design of work, "Chains" and "Report".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cockpit.chains.claim_batch import ClaimedTask
from cockpit.chains.pending_approvals import pending_approvals
from cockpit.chains.usage import UsageMeter
from cockpit.core.errors import Stale
from cockpit.learn.resume_line import one_line
from cockpit.store.chains import task_leases, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.tasks.task_context import TaskOutcome

LOOK_S = 1.0
"""How often a session looks what waits for a person or for others, in seconds."""
BEAT_S = 10.0
"""How often it says that it lives, at least, and keeps its leases."""


class Heartbeat:
    """What a session has in hand. ``batches`` counts those begun; ``lost`` are tasks whose lease
    another process took: they are cancelled."""

    def __init__(
        self,
        store: Store,
        chain: Chain,
        ordinal: int,
        meter: UsageMeter,
        say: Callable[[str], None],
    ) -> None:
        self.batches = 0
        self.lost: set[str] = set()
        self._store = store
        self._chain = chain
        self._ordinal = ordinal
        self._meter = meter
        self._say = say
        self._running: dict[str, tuple[ClaimedTask, asyncio.Task[TaskOutcome]]] = {}
        self._waiting: frozenset[str] = frozenset()

    def keep(self, taken: ClaimedTask, doing: asyncio.Task[TaskOutcome]) -> None:
        """The task is being done by ``doing``."""
        self._running[taken.task_id] = (taken, doing)

    def let_go(self) -> None:
        """Nothing is being done any more."""
        self._running = {}

    async def watch(self) -> None:
        """Look after the session until it is cancelled.

        Raises ``IllegalTransition`` when it was given up for dead.
        """
        clock = self._store.clock
        beat_at, told = clock.monotonic(), self._meter.pressure().tokens
        while True:
            await clock.sleep(LOOK_S)
            self._look()
            tokens = self._meter.look().tokens
            if clock.monotonic() - beat_at >= BEAT_S or tokens != told:
                beat_at, told = clock.monotonic(), tokens
                await self._store.write(self.beat)

    def beat(self, tx: Tx) -> None:
        """Say that the session lives and what it spent, and keep its leases."""
        pressure = self._meter.pressure()
        workers.record_heartbeat(
            tx,
            self._chain.chain_id,
            self._ordinal,
            tokens=pressure.tokens,
            dropped_share=pressure.dropped_share,
            cost_usd=pressure.cost_usd,
            batches=self.batches,
        )
        # A copy: the loop goes on meanwhile.
        for task_id, (taken, doing) in tuple(self._running.items()):
            try:
                task_leases.renew(tx, task_id, taken.token)
            except Stale:
                # This is the store's thread: what is cancelled lives on the loop's.
                self.lost.add(task_id)
                doing.get_loop().call_soon_threadsafe(doing.cancel)

    def _look(self) -> None:
        under_way = tuple(self._running)
        found = self._store.read_now(lambda seen: pending_approvals(seen, under_way))
        for one in found:
            if one.proposal_id not in self._waiting:
                self._say(f"{one.task_id} waits for you: {one_line(one.title)}")
        self._waiting = frozenset(one.proposal_id for one in found)

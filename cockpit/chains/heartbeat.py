"""A worker's heartbeat: it renews the worker's row and leases, and prints which proposals wait.

See ``docs/reference/chains.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence

from cockpit.chains.claim_batch import ClaimedTask
from cockpit.chains.handover import UsageMeter
from cockpit.core.errors import Stale
from cockpit.learn.resume_line import one_line
from cockpit.store.chains import task_leases, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.tasks.task_context import TaskOutcome

POLL_S = 1.0
"""Seconds between two looks at waiting proposals and conflicting tasks."""
BEAT_S = 10.0
"""The longest time in seconds between two renewals of the worker's row and leases."""


class Heartbeat:
    """Keeps a worker and its leases alive while its tasks run."""

    def __init__(
        self,
        store: Store,
        chain: Chain,
        ordinal: int,
        meter: UsageMeter,
        say: Callable[[str], None],
    ) -> None:
        self.batches = 0
        """Batches that the worker started."""
        self.lost: set[str] = set()
        """Tasks whose lease another process took; their runs are cancelled."""
        self._store = store
        self._chain = chain
        self._ordinal = ordinal
        self._meter = meter
        self._say = say
        self._running: dict[str, tuple[ClaimedTask, asyncio.Task[TaskOutcome]]] = {}
        self._waiting: frozenset[str] = frozenset()

    def add(self, claimed: ClaimedTask, running: asyncio.Task[TaskOutcome]) -> None:
        """Renew the task's lease while ``running`` does it."""
        self._running[claimed.task_id] = (claimed, running)

    def clear(self) -> None:
        """Stop renewing leases; no task runs any more."""
        self._running = {}

    async def run(self) -> None:
        """Beat until cancelled. Raises ``IllegalTransition`` when the worker was declared dead."""
        clock = self._store.clock
        beat_at, tokens_before = clock.monotonic(), self._meter.usage().tokens
        while True:
            await clock.sleep(POLL_S)
            self._announce_approvals()
            tokens = self._meter.measure().tokens
            if clock.monotonic() - beat_at >= BEAT_S or tokens != tokens_before:
                beat_at, tokens_before = clock.monotonic(), tokens
                await self._store.write(self.beat)

    def beat(self, tx: Tx) -> None:
        """Write the worker's usage and renew its leases."""
        usage = self._meter.usage()
        workers.record_heartbeat(
            tx,
            self._chain.chain_id,
            self._ordinal,
            tokens=usage.tokens,
            dropped_share=usage.dropped_share,
            cost_usd=usage.cost_usd,
            batches=self.batches,
        )
        # A copy: the event loop changes the dictionary meanwhile.
        for task_id, (claimed, running) in tuple(self._running.items()):
            try:
                task_leases.renew(tx, task_id, claimed.token)
            except Stale:
                # This is the store's thread; the asyncio task belongs to the event loop's.
                self.lost.add(task_id)
                running.get_loop().call_soon_threadsafe(running.cancel)

    def _announce_approvals(self) -> None:
        running = tuple(self._running)
        approvals = self._store.read_now(lambda connection: _pending_approvals(connection, running))
        for proposal_id, task_id, title in approvals:
            if proposal_id not in self._waiting:
                self._say(f"{task_id} waits for you: {one_line(title)}")
        self._waiting = frozenset(proposal_id for proposal_id, _, _ in approvals)


def _pending_approvals(
    connection: sqlite3.Connection, task_ids: Sequence[str]
) -> list[tuple[str, str, str]]:
    """Return ids, tasks and titles of the pending proposals of these tasks' current steps, oldest first."""
    marks = ",".join("?" * len(task_ids))
    rows = connection.execute(
        "SELECT p.proposal_id, r.task_id, p.title FROM proposals p"  # noqa: S608 - marks
        " JOIN task_runs r ON r.session_id=p.session_id"
        f" WHERE p.status='pending' AND r.outcome IS NULL AND r.task_id IN ({marks})"
        " ORDER BY p.created_at, p.proposal_id",
        tuple(task_ids),
    )
    return rows.fetchall()

"""The handover: when a worker ends so that the next worker of its chain continues.

A worker hands over when its roles have spent its token limit, when a packet had no room for too large a
share of the known facts, or when it has done its number of batches. It then ends cleanly: the work in
progress is saved, and the next worker resumes it. This module measures a worker and decides. The stored
reason of the first two is ``pressure``, of the third ``quota``. See ``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from cockpit.store.chains import task_runs
from cockpit.store.chains.end_reasons import BATCH_LIMIT, CHAIN_LIMIT, TOKEN_LIMIT
from cockpit.store.db.database import Store
from cockpit.tasks import role_usage

MAX_DROPPED_SHARE: Final = 0.5
"""A packet that leaves out more than this share of utility shows a role too little to decide well."""

TOKENS, DROPPED = "tokens", "dropped"
"""The two measures behind the reason :data:`TOKEN_LIMIT`."""


class WorkerLimits(msgspec.Struct, frozen=True):
    """What one worker may use; None means unlimited."""

    tokens: int | None = None
    """Tokens that its roles may spend."""
    dropped_share: float | None = MAX_DROPPED_SHARE
    """Largest share of utility (0 to 1) that a packet may leave out."""
    batches: int | None = None
    """Batches that it may start."""
    cost_usd: float | None = None
    """What is left of the chain's cost limit."""
    wall_s: float | None = None
    """What is left of the chain's time limit, in seconds."""


class WorkerUsage(msgspec.Struct, frozen=True):
    """What a worker has used, against its limits."""

    limits: WorkerLimits
    tokens: int = 0
    dropped_share: float = 0.0
    """Largest share of utility (0 to 1) that one of its packets left out."""
    cost_usd: float = 0.0
    unpriced_tokens: int = 0
    """Tokens without a known price: with them no limit of cost can be kept."""
    wall_s: float = 0.0
    """Seconds since the worker started."""

    @property
    def exceeded(self) -> str:
        """The measure that passed its limit: ``tokens``, ``dropped``, or empty."""
        if self.limits.tokens is not None and self.tokens >= self.limits.tokens:
            return TOKENS
        if self.limits.dropped_share is not None and self.dropped_share > self.limits.dropped_share:
            return DROPPED
        return ""

    @property
    def end_reason(self) -> str:
        """Why the worker has to end after its batch; empty while it may continue."""
        chain_limits = (
            (self.limits.cost_usd, self.cost_usd),
            (self.limits.wall_s, self.wall_s),
        )
        if any(limit is not None and used >= limit for limit, used in chain_limits):
            return CHAIN_LIMIT
        if self.limits.cost_usd is not None and self.unpriced_tokens:
            return CHAIN_LIMIT
        return TOKEN_LIMIT if self.exceeded else ""

    @property
    def end_reason_before_step(self) -> str:
        """Why no further step of a running task may start; empty while one may.

        Facts without room have no room in the next worker's packets either, so they end the worker only
        after the batch.
        """
        reason = self.end_reason
        return "" if reason == TOKEN_LIMIT and self.exceeded == DROPPED else reason

    def text(self) -> str:
        """``41,200 of 50,000 tokens (82 %), 12 % of known facts left out``."""
        spent = f"{self.tokens:,} tokens"
        if self.limits.tokens is not None:
            percent = 100 * self.tokens // max(1, self.limits.tokens)
            spent = f"{self.tokens:,} of {self.limits.tokens:,} tokens ({percent} %)"
        return f"{spent}, {round(100 * self.dropped_share)} % of known facts left out"


class _TaskUsage(Struct):
    """What a task used before this worker claimed it, and since."""

    tokens_before: int
    cost_before: float
    rejected_before: int
    unpriced_before: int
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    measured_session: str = ""


class UsageMeter:
    """Measures one worker from the sessions of its roles while they run, and decides when it ends.

    It keeps the sums, and what of them is a running task's.
    """

    def __init__(
        self,
        store: Store,
        limits: WorkerLimits,
        chain_id: str,
        ordinal: int,
        say: Callable[[str], None],
    ) -> None:
        """``say`` prints a line for the user, once."""
        self._say = say
        self._announced = False
        self._store = store
        self._limits = limits
        self._worker = (chain_id, ordinal)
        self._started = store.clock.monotonic()
        self._running: dict[str, _TaskUsage] = {}
        self._tokens = 0
        self._cost = 0.0
        self._unpriced = 0
        self._dropped = 0.0

    def start_task(self, task_id: str) -> None:
        """Count the task's usage from now on."""

        def read(connection: sqlite3.Connection) -> _TaskUsage:
            tokens, cost = role_usage.task_usage(connection, task_id)
            unpriced = role_usage.unpriced_tokens(connection, task_id)
            return _TaskUsage(tokens, cost, _count_rejections(connection, task_id), unpriced)

        self._running[task_id] = self._store.read_now(read)

    def measure_task(self, task_id: str) -> WorkerUsage:
        """Read the task's usage again and return the worker's."""
        self._measure(task_id)
        return self.usage()

    def measure(self) -> WorkerUsage:
        """Read the usage of the running tasks again, and return the worker's."""
        for task_id in self._running:
            self._measure(task_id)
        return self.usage()

    def _measure(self, task_id: str) -> None:
        usage = self._running[task_id]

        def read(connection: sqlite3.Connection) -> tuple[int, float, int, float]:
            tokens, cost = role_usage.task_usage(connection, task_id)
            unpriced = role_usage.unpriced_tokens(connection, task_id)
            return (
                tokens - usage.tokens_before,
                cost - usage.cost_before,
                unpriced - usage.unpriced_before,
                self._read_dropped(connection, task_id, usage),
            )

        tokens, cost, unpriced, dropped = self._store.read_now(read)
        self._tokens += tokens - usage.tokens
        self._cost += cost - usage.cost_usd
        self._unpriced += unpriced - usage.unpriced
        usage.tokens, usage.cost_usd, usage.unpriced = tokens, cost, unpriced
        self._dropped = max(self._dropped, dropped)

    def _read_dropped(
        self, connection: sqlite3.Connection, task_id: str, usage: _TaskUsage
    ) -> float:
        ended_sessions = [
            step.session_id
            for step in task_runs.select_steps(connection, task_id)
            if step.session_id and not step.open and (step.chain_id, step.ordinal) == self._worker
        ]
        if not ended_sessions or ended_sessions[-1] == usage.measured_session:
            return 0.0
        # A session that has ended keeps its last packet: read it once.
        usage.measured_session = ended_sessions[-1]
        return role_usage.dropped_share(connection, ended_sessions[-1])

    def end_task(self, task_id: str) -> tuple[int, int]:
        """Stop counting the task.

        Returns the tokens that it used in this worker, and the reviews of it that did not pass.
        """
        self._measure(task_id)
        usage = self._running.pop(task_id)
        rejected = self._store.read_now(lambda connection: _count_rejections(connection, task_id))
        return usage.tokens, rejected - usage.rejected_before

    def usage(self) -> WorkerUsage:
        """The worker's usage as it was last read."""
        return WorkerUsage(
            self._limits,
            tokens=self._tokens,
            dropped_share=self._dropped,
            cost_usd=self._cost,
            unpriced_tokens=max(0, self._unpriced),
            wall_s=self._store.clock.monotonic() - self._started,
        )

    def before_step(self, task_id: str) -> bool:
        """Whether the worker has to end before the next step of a running task."""
        usage = self.measure_task(task_id)
        return bool(self._announce(usage, usage.end_reason_before_step))

    def before_batch(self, batches: int) -> str:
        """Why no batch may start after ``batches`` of them; empty while one may."""
        usage = self.usage()
        if reason := self._announce(usage, usage.end_reason):
            return reason
        limit = self._limits.batches
        return BATCH_LIMIT if limit is not None and batches >= limit else ""

    def _announce(self, usage: WorkerUsage, reason: str) -> str:
        if reason and not self._announced:
            self._announced = True
            limit = "Token limit" if reason == TOKEN_LIMIT else "The chain's limit of cost or time"
            self._say(f"{limit} reached: {usage.text()}. The worker ends after the current steps.")
        return reason


def _count_rejections(connection: sqlite3.Connection, task_id: str) -> int:
    (count,) = connection.execute(
        "SELECT count(*) FROM task_runs WHERE task_id=? AND step LIKE '%_review'"
        " AND outcome IN ('FAIL','BLOCKED')",
        (task_id,),
    ).fetchone()
    return int(count)

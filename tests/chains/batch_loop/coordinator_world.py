"""A chain over a real repository and store, whose sessions are played here with scripted roles."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chains.new_chain import create_chain_row
from tasks.taskrun_world import World, finish, git

from cockpit.backlog import service
from cockpit.chains.batch_loop import run_batches
from cockpit.chains.handover import WorkerLimits
from cockpit.chains.report.chain_report import collect_before_decay
from cockpit.core.clock import SystemClock, format_time
from cockpit.store.backlog import tasks
from cockpit.store.chains import task_leases, worker_metrics, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal
from cockpit.tasks.task_context import TaskContext

ALL_PASS = (
    finish("implementer", "Done as asked.")
    + finish("spec reviewer", "VERDICT: PASS\nAll there.")
    + finish("quality reviewer", "VERDICT: PASS\nSound.")
)
"""Every role is content with what is there."""


class Hurried(SystemClock):
    """A clock whose waiting is a hundred times as fast."""

    def monotonic(self) -> float:
        return 100 * super().monotonic()

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / 100)


@dataclass(frozen=True)
class SessionEnd:
    """What the rows say of a worker that ended."""

    reason: str
    tokens: int
    dropped_share: float
    batches: int
    tasks_done: int = 0
    tasks_blocked: int = 0
    interrupted: int = 0


def read_end(connection: sqlite3.Connection, chain: Chain, ordinal: int) -> SessionEnd:
    worker = workers.load(connection, chain.chain_id, ordinal)
    counts = [
        (each.tasks_done, each.tasks_blocked, each.interrupted)
        for each in worker_metrics.select_for_chain(connection, chain.chain_id)
        if each.ordinal == ordinal
    ]
    row = (worker.reason, worker.tokens, worker.dropped_share, worker.batches)
    return SessionEnd(*row, *(counts[0] if counts else ()))


@dataclass
class ChainWorld:
    """A project with a chain, and what its sessions said."""

    world: World
    said: list[str] = field(default_factory=list)
    heard: dict[str, Callable[[], object]] = field(default_factory=dict)

    @property
    def store(self) -> Any:
        return self.world.store

    def green(self) -> None:
        """Make the project's tests pass as it stands."""
        (self.world.root / "calc.py").write_text("def add(a, b):\n    return a + b\n")
        git(self.world.root, "commit", "--quiet", "-am", "Add adds")

    def tasks(self, count: int, **fields: Any) -> list[str]:
        """Tasks that are done without a change, unless ``fields`` give another type."""
        given = {"task_type": "spike", **fields}
        return [
            self.world.task(f"Task {at}", files=[f"part{at}/x.py"], **given)
            for at in range(1, count + 1)
        ]

    def chain(self, **changed: Any) -> Chain:
        base = git(self.world.root, "rev-parse", "HEAD")
        return self.store.write_now(lambda tx: create_chain_row(tx, base_commit=base, **changed))

    def task_context(
        self, chain: Chain, ordinal: int, scenario: str, **changed: Any
    ) -> TaskContext:
        given: dict[str, Any] = {
            "chain_id": chain.chain_id,
            "ordinal": ordinal,
            "chain_branch": chain.branch,
            "before_decay": collect_before_decay(chain.chain_id),
        }
        return self.world.task_context(scenario, **{**given, **changed})

    async def session(
        self,
        chain: Chain,
        ordinal: int = 1,
        *,
        scenario: str = ALL_PASS,
        limits: WorkerLimits | None = None,
        task_context: TaskContext | None = None,
    ) -> SessionEnd:
        """One session from its row's beginning to its end."""
        store = self.store
        limit = (limits.tokens if limits else None) or 1_000_000
        store.write_now(lambda tx: workers.start(tx, chain, ordinal, token_limit=limit))
        reason = await run_batches(
            task_context or self.task_context(chain, ordinal, scenario),
            chain,
            ordinal,
            limits=limits or WorkerLimits(),
            say=self.hear,
        )
        store.write_now(lambda tx: workers.end(tx, chain, ordinal, "clean", reason))
        return store.read_now(lambda seen: read_end(seen, chain, ordinal))

    def on_line(self, start: str, act: Callable[[], object]) -> None:
        """Do this when a line that begins so is said."""
        self.heard[start] = act

    def hear(self, line: str) -> None:
        self.said.append(line)
        for start, act in self.heard.items():
            if line.startswith(start):
                act()

    def epic_and_story(self) -> tuple[str, str]:
        def step(tx: Tx) -> tuple[str, str]:
            epic = service.create_epic(tx, "An epic", by="person").epic_id
            return epic, service.create_story(tx, "S", epic_id=epic, by="person").story_id

        return self.store.write_now(step)

    def unblock(self, task_id: str) -> None:
        self.store.write_now(lambda tx: service.resolve_blocker(tx, task_id, by="person"))

    def statuses(self) -> dict[str, str]:
        found = self.store.read_now(lambda seen: tasks.select(seen, limit=10_000))
        return {task.task_id: task.status for task in found}

    def batches(self) -> list[dict[str, Any]]:
        batches = [row.raw_detail() for row in self.rows("batch.changed")]
        return [batch for batch in batches if batch["outcome"]]

    def rows(self, action: str) -> list[Any]:
        found = self.store.read_now(lambda seen: journal.rows(seen, limit=1_000_000))
        return [row for row in found if row.action == action]

    def leases(self) -> list[str]:
        now = format_time(self.store.clock.now())
        return [
            one.task_id
            for one in self.store.read_now(lambda seen: task_leases.select_active(seen, now))
        ]

    def stand(self, task_id: str, status: str, notes: str | None = None) -> None:
        self.store.write_now(lambda tx: service.set_status(tx, task_id, status, notes, by="person"))

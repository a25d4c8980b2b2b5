"""Chains of several days, written through the store as processes of chains write them."""

from __future__ import annotations

from dataclasses import dataclass, field

from chains.new_chain import create_chain_row

from cockpit.backlog import service
from cockpit.core.clock import FixedClock
from cockpit.store.chains import chains, task_leases, task_runs, worker_metrics, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.worker_metrics import BatchOutcome
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

DAY_S = 86_400.0
LIMIT = 100_000


@dataclass
class Days:
    """The store and its clock; what is written happens at the clock's moment."""

    store: Store
    clock: FixedClock
    names: list[str] = field(default_factory=list)

    def chain(self) -> Chain:
        """A chain over everything begins."""
        return self.store.write_now(create_chain_row)

    def session(
        self,
        chain: Chain,
        ordinal: int,
        batches: list[tuple[BatchOutcome, int, int]],
        *,
        tokens: int,
        dropped: float = 0.0,
        dies: bool = False,
    ) -> None:
        """A session with batches of (outcome, tasks done, tasks put down). One that ``dies`` held a
        task then, and is found dead."""

        def step(tx: Tx) -> None:
            workers.start(tx, chain, ordinal, token_limit=LIMIT)
            for number, (outcome, done, put_down) in enumerate(batches, start=1):
                worker_metrics.record_batch_end(
                    tx, chain, ordinal, batch=number, size=2, outcome=outcome, next_size=2,
                    done=[f"T-{n}" for n in range(done)],
                    interrupted=[f"T-{n}" for n in range(put_down)],
                )  # fmt: skip
            workers.record_heartbeat(
                tx, chain.chain_id, ordinal, tokens=tokens, dropped_share=dropped, cost_usd=0.1,
                batches=len(batches),
            )  # fmt: skip
            if dies:
                task = service.create_task(tx, "held", by="person").task_id
                owner = workers.worker_name(chain.chain_id, ordinal)
                task_leases.acquire(tx, task, owner)
                workers.record_crash(tx, chain, ordinal, "its process is gone")
            else:
                workers.end(tx, chain, ordinal, "clean", "pressure")

        self.store.write_now(step)

    def reviews(self, *verdicts: str) -> None:
        """A task is reviewed by each role with these verdicts."""

        def step(tx: Tx) -> None:
            task = service.create_task(tx, "reviewed", by="person").task_id
            for verdict in verdicts:
                begun = task_runs.begin(tx, task, 1, "spec_review", chain_id="", ordinal=0)
                task_runs.end(tx, begun, verdict, summary="seen")

        self.store.write_now(step)

    def next_day(self) -> None:
        self.clock.advance(DAY_S)


def three_days(store: Store, clock: FixedClock) -> Days:
    """1 January: a chain of three sessions that went badly; 2 and 3 January: two that went well."""
    days = Days(store, clock)
    first = days.chain()
    days.session(first, 1, [("completed", 2, 0), ("interrupted", 1, 1)], tokens=110_000)
    days.session(first, 2, [("failed", 0, 0)], tokens=40_000, dropped=0.25)
    days.session(first, 3, [("completed", 2, 0)], tokens=60_000, dies=True)
    days.reviews("FAIL", "PASS", "FAIL")
    store.write_now(lambda tx: chains.drain(tx, first.chain_id))
    store.write_now(lambda tx: chains.end(tx, first.chain_id, "stopped", "enough"))
    store.write_now(lambda tx: chains.resume(tx, first.chain_id))
    days.next_day()
    second = days.chain()
    days.session(second, 1, [("completed", 3, 0), ("completed", 4, 0)], tokens=70_000)
    days.reviews("PASS", "PASS")
    days.next_day()
    days.session(second, 2, [("completed", 4, 0), ("completed", 4, 0)], tokens=90_000)
    days.reviews("FAIL", "PASS")
    return days

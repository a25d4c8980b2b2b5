"""Chains in a journal: written through the store, as the processes that work in them write it."""

from __future__ import annotations

from pathlib import Path

import work_scenes
from app_scenes import Scene

from cockpit.backlog import service
from cockpit.store.backlog import handoffs, wip
from cockpit.store.backlog import tasks as stored_tasks
from cockpit.store.chains import chains, task_runs, worker_metrics, workers
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionCompleted
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import sessions

ROLES = {
    "implement": "implementer",
    "fix": "fixer",
    "spec_review": "spec_reviewer",
    "quality_review": "quality_reviewer",
}
LIMIT = 120_000


class ChainScene:
    """One chain's story, a step at a time."""

    def __init__(self, store: Store, root: Path) -> None:
        self.store = store
        self.root = root
        self.chain_id = ""
        self.ordinal = 0
        self.last = ""
        """The engine session that was begun last, and what is written on it."""
        self.scene = Scene(store, root)

    def begin(self, scope_kind: str = "all", scope_id: str = "") -> ChainScene:
        def step(tx: Tx) -> str:
            return chains.create(
                tx, scope_kind=scope_kind, scope_id=scope_id, headless=True, batch="auto",
                approve="ask", model=None, runner=None, max_chains=10, max_cost=None,
                max_wall_s=None, base_branch="main", base_commit="0" * 40,
            ).chain_id  # fmt: skip

        self.chain_id = self.store.write_now(step)
        return self

    def chain(self) -> chains.Chain:
        return self.store.read_now(lambda found: chains.load(found, self.chain_id))

    def session(self, limit: int = LIMIT) -> ChainScene:
        """The next session of the chain begins."""
        self.ordinal += 1
        chain, ordinal = self.chain(), self.ordinal
        self.store.write_now(lambda tx: workers.start(tx, chain, ordinal, token_limit=limit))
        return self

    def rests(
        self, reason: str = "pressure", tokens: int = 97_000, cost: float = 0.31
    ) -> ChainScene:
        """The session ends in order."""
        chain, ordinal = self.chain(), self.ordinal

        def step(tx: Tx) -> None:
            workers.record_heartbeat(
                tx, chain.chain_id, ordinal, tokens=tokens, dropped_share=0.04, cost_usd=cost,
                batches=2,
            )  # fmt: skip
            workers.end(tx, chain, ordinal, "clean", reason)

        self.store.write_now(step)
        return self

    def dies(self, reason: str = "its process is gone") -> ChainScene:
        chain, ordinal = self.chain(), self.ordinal
        self.store.write_now(lambda tx: workers.record_crash(tx, chain, ordinal, reason))
        return self

    def ends(self, status: str = "completed", reason: str = "") -> ChainScene:
        self.store.write_now(lambda tx: chains.end(tx, self.chain_id, status, reason))
        return self

    def batch(self, number: int, *task_ids: str) -> ChainScene:
        chain, ordinal = self.chain(), self.ordinal
        self.store.write_now(
            lambda tx: worker_metrics.record_batch_start(
                tx, chain, ordinal, batch=number, size=len(task_ids), task_ids=task_ids
            )
        )
        return self

    def takes_up(self, task_id: str, phase: str) -> ChainScene:
        """A task that another session left is gone on with in this one."""
        told = {
            "chain_id": self.chain_id,
            "ordinal": self.ordinal,
            "task_id": task_id,
            "phase": phase,
        }

        def step(tx: Tx) -> None:
            tx.append_row(Action.TASK_TAKEN_UP, body=told)
            left = task_runs.select_steps(tx.connection, task_id)[-1]
            if left.open:
                task_runs.resume(tx, left, chain_id=self.chain_id, ordinal=self.ordinal)

        self.store.write_now(step)
        return self

    def step(
        self, task_id: str, step: str, *, says: str = "", spends: int = 0, cost: float = 0.0,
        next_step: str = "",
    ) -> ChainScene:  # fmt: skip
        """The task enters a step; one of a role has a session that says something."""

        def enter(tx: Tx) -> None:
            known = task_runs.select_steps(tx.connection, task_id)
            run = (known[-1].run + (known[-1].step in task_runs.ENDS)) if known else 1
            made = task_runs.begin(
                tx, task_id, run, step, chain_id=self.chain_id, ordinal=self.ordinal
            )
            status = "review" if step.endswith("review") or step == "merge" else "in_progress"
            if step not in task_runs.ENDS:
                service.set_status(tx, task_id, status, by="engine")
                phase = {"implement": "implementing", "test": "testing", "fix": "fixing"}.get(step)
                wip.update(
                    tx, task_id, {"phase": phase or "reviewing", "next_step": next_step or step},
                    by="engine",
                )  # fmt: skip
            if step in ROLES:
                title = stored_tasks.load(tx.connection, task_id).title
                session = sessions.create(
                    tx, task_type="implement", title=title, words=title, target={},
                    model="anthropic:claude-sonnet-5", policy="ask", interactive=False,
                    root=self.root, rev=None, profile_id="default", limits={}, project="acme/api",
                    branch=f"cockpit/{task_id}", role=ROLES[step], task_id=task_id, actor="engine",
                )  # fmt: skip
                task_runs.attach_session(tx, made, session.session_id)
                self.last = session.session_id

        self.store.write_now(enter)
        if step in ROLES:
            scene = self.scene = Scene(self.store, self.root)
            scene.session_id = self.last
            scene.wave("observing", "orienting", "deciding")
            if says:
                scene.say("agent", says)
            if spends:
                scene.spend(spends, cost)
        return self

    def over(self, task_id: str, outcome: str, summary: str = "", **results: int) -> ChainScene:
        """The step under way came to its outcome."""

        def end(tx: Tx) -> None:
            step = task_runs.select_steps(tx.connection, task_id)[-1]
            if results:
                told = {"ran": True, **results}
                wip.update(tx, task_id, {"test_results": told}, by="engine")
            task_runs.end(tx, step, outcome, summary=summary)

        self.store.write_now(end)
        return self

    def done(
        self, task_id: str, summary: str = "It does what was asked; its test says so."
    ) -> ChainScene:
        return self._conclude(task_id, "done", "PASS", summary)

    def blocked(self, task_id: str, reason: str) -> ChainScene:
        return self._conclude(task_id, "blocked", "FAIL", reason)

    def _conclude(self, task_id: str, status: str, verdict: str, words: str) -> ChainScene:
        self.step(task_id, status)

        def end(tx: Tx) -> None:
            task_runs.end(
                tx, task_runs.select_steps(tx.connection, task_id)[-1], verdict, summary=words
            )
            handoffs.set_handoff(tx, task_id, verdict, words, [], "", by="engine")
            reason = words if status == "blocked" else None
            service.set_status(tx, task_id, status, reason, by="engine")

        self.store.write_now(end)
        return self

    def whole(
        self, task_id: str, words: str, spends: int = 14_000, cost: float = 0.05
    ) -> ChainScene:
        """A task that goes through at once."""
        for step in ("implement", "spec_review", "quality_review"):
            self.step(task_id, step, says=words, spends=spends, cost=cost)
            self.over(task_id, "done" if step == "implement" else "PASS", words)
            self.store.write_now(
                lambda tx: sessions.set_status(
                    tx,
                    self.last,
                    "completed",
                    detail=SessionCompleted(status="done", summary=words),
                )
            )
        return self.done(task_id, words)


def running(store: Store, root: Path) -> ChainScene:
    """A backlog, a chain that is complete, and one in its third session: a task being fixed, one that
    waits for the person, one that was stuck."""
    work_scenes.story(store)
    first = ChainScene(store, root).begin("story", "S-3").session()
    first.batch(1, "T-9").whole("T-9", "The page on the audit log reads it by example.")
    first.rests("empty", 42_000, 0.15).ends()
    chain = ChainScene(store, root).begin("epic", "E-1").session()
    chain.batch(1, "T-3").whole("T-3", "The clock is read once and passed down.").rests()
    chain.session().batch(1, "T-7")
    chain.step(
        "T-7", "implement", says="A load of 200 sign-ins a second.", spends=31_000, cost=0.09
    )
    chain.over("T-7", "done").step("T-7", "test").over(
        "T-7", "failed", "2 of 31 fail", passed=29, failed=2
    )
    chain.step("T-7", "fix", says="The limiter's window is off by one.", spends=12_000, cost=0.03)
    chain.over("T-7", "done").step("T-7", "test").over("T-7", "failed", "2 of 31 fail")
    chain.blocked("T-7", "The tests still fail after 3 tries of the fixer: 2 of 31 fail").rests(
        "pressure", 110_000, 0.42
    )
    chain.session().batch(1, "T-2", "T-5")
    chain.step(
        "T-2", "implement", says="One read of the clock per request.", spends=24_000, cost=0.08
    )
    chain.over("T-2", "done").step("T-2", "test")
    chain.over("T-2", "failed", "auth.test.ts:validateToken expired", passed=12, failed=1)
    chain.step(
        "T-2", "fix", spends=9_000, cost=0.03, next_step="token expiry at exactly its second",
        says="The comparison takes `<` where the second itself is still valid.",
    )  # fmt: skip
    chain.step("T-5", "implement", says="Counts are kept by /24.", spends=18_000, cost=0.06)
    chain.scene.advance("acting").propose(
        "p-chain", title="edit src/signin/limits.py", fields=(("file", "src/signin/limits.py"),)
    )
    return chain

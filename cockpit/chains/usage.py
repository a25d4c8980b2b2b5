"""What a chain session spent so far, read from its roles' sessions while they run.

Source: design of work, "Chains" (context pressure is measured).
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from cockpit.chains.handover import WorkerLimits, WorkerUsage
from cockpit.store.chains import task_runs
from cockpit.store.db.database import Store
from cockpit.tasks import role_usage


@dataclass(slots=True)
class _Spell:
    """A task while this session does it: what it had cost before, and what it cost since."""

    tokens_before: int
    cost_before: float
    rejected_before: int
    tokens: int = 0
    cost_usd: float = 0.0
    measured: str = ""


class UsageMeter:
    """One session's measures. Of a task that is over only its share of the sums is kept."""

    def __init__(self, store: Store, quota: WorkerLimits, chain_id: str, ordinal: int) -> None:
        self._store = store
        self._quota = quota
        self._here = (chain_id, ordinal)
        self._began = store.clock.monotonic()
        self._under_way: dict[str, _Spell] = {}
        self._tokens = 0
        self._cost = 0.0
        self._dropped = 0.0

    def begin(self, task_id: str) -> None:
        """The session does the task from now on."""

        def look(found: sqlite3.Connection) -> _Spell:
            return _Spell(*role_usage.task_usage(found, task_id), _rejected(found, task_id))

        self._under_way[task_id] = self._store.read_now(look)

    def measure(self, task_id: str) -> WorkerUsage:
        """Look again at what the task has cost."""
        spell = self._under_way[task_id]

        def look(found: sqlite3.Connection) -> float:
            tokens, cost = role_usage.task_usage(found, task_id)
            spell.tokens, spell.cost_usd = tokens - spell.tokens_before, cost - spell.cost_before
            ended = [
                step.session_id
                for step in task_runs.select_steps(found, task_id)
                if step.session_id and not step.open and (step.chain_id, step.ordinal) == self._here
            ]
            if not ended or ended[-1] == spell.measured:
                return 0.0
            # One packet a step: it is read whole, and does not change any more.
            spell.measured = ended[-1]
            return role_usage.dropped_share(found, ended[-1:])

        self._dropped = max(self._dropped, self._store.read_now(look))
        return self.pressure()

    def look(self) -> WorkerUsage:
        """Look again at everything that is under way."""
        for task_id in self._under_way:
            self.measure(task_id)
        return self.pressure()

    def end(self, task_id: str) -> tuple[int, int]:
        """The session does the task no more. Returns the tokens it cost here, and the verdicts on it
        that were not PASS."""
        self.measure(task_id)
        spell = self._under_way.pop(task_id)
        self._tokens += spell.tokens
        self._cost += spell.cost_usd
        rejected = self._store.read_now(lambda found: _rejected(found, task_id))
        return spell.tokens, rejected - spell.rejected_before

    def pressure(self) -> WorkerUsage:
        """The session's measures as they were last seen."""
        spells = self._under_way.values()
        return WorkerUsage(
            self._quota,
            tokens=self._tokens + sum(spell.tokens for spell in spells),
            dropped_share=self._dropped,
            cost_usd=self._cost + sum(spell.cost_usd for spell in spells),
            wall_s=self._store.clock.monotonic() - self._began,
        )


def _rejected(connection: sqlite3.Connection, task_id: str) -> int:
    (count,) = connection.execute(
        "SELECT count(*) FROM task_runs WHERE task_id=? AND step LIKE '%_review'"
        " AND outcome IN ('FAIL','BLOCKED')",
        (task_id,),
    ).fetchone()
    return int(count)

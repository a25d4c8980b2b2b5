"""The measures of chains: tokens, tasks and interruptions of workers, batches and reviews.

They are computed from the journal alone, so any period can be measured and compared with another. See
``docs/reference/measures.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from cockpit.chains.report.estimate_accuracy import EstimateAccuracy, compare_estimates
from cockpit.core.clock import milliseconds_between
from cockpit.store.journal.details.chains import BatchCompleted, ChainChanged, WorkerChanged
from cockpit.store.journal.details.detail import Detail, decode_detail
from cockpit.store.journal.details.estimates import EstimateLearned
from cockpit.store.journal.details.table import detail_type
from cockpit.store.journal.details.tasks import TaskRunStep
from cockpit.store.journal.event_types import Action

OPEN = "9999"
"""As ``before``: no end."""

_ACTIONS = (
    Action.CHAIN_CHANGED,
    Action.CHAIN_SESSION_CHANGED,
    Action.BATCH_COMPLETED,
    Action.TASK_RUN_STEP,
    Action.ESTIMATE_LEARNED,
)
_REVIEWS = ("spec_review", "quality_review")


class _Worker(Struct):
    """The sums of one worker."""

    tokens: int = 0
    limit: int = 0
    dropped: float = 0.0
    done: int = 0
    batches: int = 0
    completed: int = 0
    left_tasks: bool = False
    started_at: str = ""
    seconds: float | None = None
    cost_usd: float | None = None


class Measures(Struct, frozen=True):
    """The measures from ``since`` up to ``before`` (stored timestamps).

    Tuples have one number a worker in the order of their ends, or one a chain in the order of their
    starts. A share is 0 to 1, and None where there was nothing to measure.
    """

    since: str
    before: str
    context: tuple[float, ...] = ()
    """Each worker's tokens against its limit."""
    tokens: tuple[int, ...] = ()
    dropped: tuple[float, ...] = ()
    """The largest share of utility that one of the worker's packets left out."""
    tasks: tuple[int, ...] = ()
    """Tasks that each worker completed."""
    seconds: tuple[float, ...] = ()
    """How long each worker ran."""
    costs_usd: tuple[float, ...] = ()
    """What each worker cost, of those whose price is known."""
    chains: tuple[int, ...] = ()
    """Workers of each chain."""
    batches: Mapping[str, int] = field(
        default_factory=lambda: {"completed": 0, "interrupted": 0, "failed": 0}
    )
    batch_shares: tuple[float, ...] = ()
    reviews: Mapping[str, int] = field(default_factory=lambda: {"passed": 0, "failed": 0})
    review_days: tuple[float, ...] = ()
    interrupted: int = 0
    crashed: int = 0
    restarts: int = 0
    tasks_done: int = 0
    tasks_blocked: int = 0
    estimates: EstimateAccuracy = field(default_factory=EstimateAccuracy)
    """How wrong the estimates were of what was done in the period."""

    @property
    def workers(self) -> int:
        """Number of workers that ended."""
        return len(self.tokens)

    @property
    def context_mean(self) -> float | None:
        """Mean share of its token limit that a worker used."""
        return _mean(self.context)

    @property
    def batch_completion(self) -> float | None:
        """Share of batches whose tasks were all done or blocked."""
        return _share(self.batches.get("completed", 0), sum(self.batches.values()))

    @property
    def review_failure(self) -> float | None:
        """Share of reviews that did not pass."""
        return _share(self.reviews.get("failed", 0), sum(self.reviews.values()))

    @property
    def tasks_mean(self) -> float | None:
        """Mean number of tasks that a worker completed."""
        return _mean(self.tasks)

    @property
    def seconds_mean(self) -> float | None:
        """Mean seconds that a worker ran."""
        return _mean(self.seconds)

    @property
    def cost_mean(self) -> float | None:
        """Mean cost of a worker in US dollars."""
        return _mean(self.costs_usd)

    @property
    def chain_mean(self) -> float | None:
        """Mean number of workers of a chain."""
        return _mean(self.chains)

    @property
    def interruption(self) -> float | None:
        """Share of workers that ended with a task in progress."""
        return _share(self.interrupted, self.workers)

    def body(self) -> dict[str, Any]:
        """Return the JSON object that ``cockpit stats --json`` prints."""
        return {
            "since": self.since or None,
            "before": None if self.before == OPEN else self.before,
            "sessions": self.workers,
            "context": {
                "mean": self.context_mean,
                "highest": max(self.context, default=None),
                "tokens_mean": _mean(self.tokens),
                "dropped_highest": max(self.dropped, default=None),
                "each": list(self.context),
            },
            "batches": {"completion": self.batch_completion, **self.batches},
            "chains": {
                "count": len(self.chains),
                "sessions_mean": self.chain_mean,
                "sessions_most": max(self.chains, default=None),
                "each": list(self.chains),
            },
            "tasks": {
                "done": self.tasks_done,
                "blocked": self.tasks_blocked,
                "per_session": self.tasks_mean,
                "each": list(self.tasks),
            },
            "seconds": {
                "mean": self.seconds_mean,
                "total": sum(self.seconds),
                "each": list(self.seconds),
            },
            "cost_usd": {
                "mean": self.cost_mean,
                "total": sum(self.costs_usd) if self.costs_usd else None,
                "each": list(self.costs_usd),
            },
            "reviews": {"failure": self.review_failure, **self.reviews},
            "interrupted": {"sessions": self.interrupted, "share": self.interruption},
            "crashed": self.crashed,
            "manual_restarts": self.restarts,
            "estimates": self.estimates.body(),
        }


def measure_chains(connection: sqlite3.Connection, since: str = "", before: str = OPEN) -> Measures:
    """Measure the period from ``since`` up to ``before``.

    A worker belongs to the period in which it ended, with everything that it did before; a chain to the
    one in which it started, with all of its workers.
    """
    marks = ",".join("?" * len(_ACTIONS))
    rows = connection.execute(
        f"SELECT at, action, detail_json FROM journal WHERE action IN ({marks}) ORDER BY seq",  # noqa: S608
        tuple(str(action) for action in _ACTIONS),
    )
    return _folded(
        ((at, decode_detail(detail_type(action), text)) for at, action, text in rows), since, before
    )


def newest_row(connection: sqlite3.Connection) -> int:
    """Return the seq of the newest row that a measure is made of; 0 without any."""
    newest = 0
    for action in _ACTIONS:
        row = connection.execute("SELECT max(seq) FROM journal WHERE action=?", (str(action),))
        newest = max(newest, row.fetchone()[0] or 0)
    return newest


def _folded(rows: Iterable[tuple[str, Detail]], since: str, before: str) -> Measures:
    fold = _Fold()
    for at, event in rows:
        fold.take(at, event, inside=since <= at < before)
    ended = fold.ended
    return Measures(
        since,
        before,
        context=tuple(worker.tokens / worker.limit for worker in ended if worker.limit),
        tokens=tuple(worker.tokens for worker in ended),
        dropped=tuple(worker.dropped for worker in ended),
        tasks=tuple(worker.done for worker in ended),
        seconds=tuple(worker.seconds for worker in ended if worker.seconds is not None),
        costs_usd=tuple(worker.cost_usd for worker in ended if worker.cost_usd is not None),
        chains=tuple(count for chain, count in fold.lengths.items() if chain in fold.started),
        batches=fold.batches,
        batch_shares=tuple(worker.completed / worker.batches for worker in ended if worker.batches),
        reviews=fold.reviews,
        review_days=tuple(sum(day) / len(day) for day in fold.days.values()),
        interrupted=sum(worker.left_tasks for worker in ended),
        crashed=fold.crashed,
        restarts=fold.restarts,
        tasks_done=fold.done,
        tasks_blocked=fold.blocked,
        estimates=compare_estimates(fold.learned),
    )


class _Fold(Struct):
    """The sums over the rows so far."""

    workers: dict[tuple[str, int], _Worker] = field(default_factory=dict)
    ended: list[_Worker] = field(default_factory=list)
    lengths: dict[str, int] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    batches: dict[str, int] = field(
        default_factory=lambda: {"completed": 0, "interrupted": 0, "failed": 0}
    )
    reviews: dict[str, int] = field(default_factory=lambda: {"passed": 0, "failed": 0})
    days: dict[str, list[int]] = field(default_factory=dict)
    crashed: int = 0
    restarts: int = 0
    done: int = 0
    blocked: int = 0
    learned: list[EstimateLearned] = field(default_factory=list)

    def take(self, at: str, event: Detail, *, inside: bool) -> None:
        match event:
            case ChainChanged(what="created"):
                self.lengths[event.chain_id] = 0
                self.started |= {event.chain_id} if inside else set()
            case ChainChanged(what="resumed"):
                self.restarts += inside
            case WorkerChanged(status="running"):
                self.lengths[event.chain_id] = self.lengths.get(event.chain_id, 0) + 1
                self._worker(event.chain_id, event.ordinal).started_at = at
            case EstimateLearned() if inside:
                self.learned.append(event)
            case TaskRunStep() if inside:
                self._review(at, event)
            case BatchCompleted():
                self._batch(self._worker(event.chain_id, event.ordinal), event, inside)
            case WorkerChanged():
                self._end(self._worker(event.chain_id, event.ordinal), at, event, inside)

    def _worker(self, chain_id: str, ordinal: int) -> _Worker:
        return self.workers.setdefault((chain_id, ordinal), _Worker())

    def _batch(self, worker: _Worker, batch: BatchCompleted, inside: bool) -> None:
        worker.batches += 1
        worker.completed += batch.outcome == "completed"
        worker.done += len(batch.done)
        worker.left_tasks |= bool(batch.interrupted)
        if inside:
            self.batches[batch.outcome] = self.batches.get(batch.outcome, 0) + 1
            self.done += len(batch.done)
            self.blocked += len(batch.blocked)

    def _review(self, at: str, step: TaskRunStep) -> None:
        if step.step in _REVIEWS and step.outcome:
            failed = step.outcome != "PASS"
            self.reviews["failed" if failed else "passed"] += 1
            self.days.setdefault(at[:10], []).append(int(failed))

    def _end(self, worker: _Worker, at: str, event: WorkerChanged, inside: bool) -> None:
        crashed = event.status == "crashed"
        if worker.started_at:
            worker.seconds = (milliseconds_between(worker.started_at, at) or 0) / 1000
        worker.cost_usd = event.cost_usd
        worker.tokens = event.tokens
        worker.limit = event.token_limit
        worker.dropped = event.dropped_share
        worker.left_tasks |= crashed and bool(event.freed)
        if inside:
            self.ended.append(worker)
            self.crashed += crashed


def _mean(numbers: tuple[float, ...] | tuple[int, ...]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None

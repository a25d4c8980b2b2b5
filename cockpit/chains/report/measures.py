"""The measures of chains: tokens, tasks and interruptions of workers, batches, reviews and estimates.

They are computed from the journal alone, so any period can be measured and compared with another. See
``docs/reference/measures.md``.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from msgspec import Struct, field

from cockpit.chains.report.measure import Measure, format_measure
from cockpit.core.clock import milliseconds_between
from cockpit.core.text import pluralize
from cockpit.store.journal.details.chains import BatchChanged, ChainChanged, WorkerChanged
from cockpit.store.journal.details.detail import Detail, decode_detail
from cockpit.store.journal.details.estimates import EstimateLearned, Expected, Range
from cockpit.store.journal.details.table import detail_type
from cockpit.store.journal.details.tasks import TaskRunStep
from cockpit.store.journal.event_types import Action

OPEN = "9999"
"""As ``before``: no end."""

_ACTIONS = (
    Action.CHAIN_CHANGED,
    Action.CHAIN_SESSION_CHANGED,
    Action.BATCH_CHANGED,
    Action.TASK_RUN_STEP,
    Action.ESTIMATE_LEARNED,
)
_REVIEWS = ("spec_review", "quality_review")
_RARE = 0.05
"""The share up to which interruptions are rare."""


class Measures(Struct, frozen=True):
    """The measures from one time up to another (stored timestamps)."""

    workers: int
    """Workers that ended in the period."""
    rows: tuple[Measure, ...]
    """Every measure, always in the same order."""


def measure_chains(
    connection: sqlite3.Connection | None, since: str = "", before: str = OPEN
) -> Measures:
    """Measure the period from ``since`` up to ``before``; without a store, nothing happened in it.

    A worker belongs to the period in which it ended, with everything that it did before; a chain to the
    one in which it started, with all of its workers.
    """
    fold = _Fold()
    if connection is not None:
        marks = ",".join("?" * len(_ACTIONS))
        rows = connection.execute(
            f"SELECT at, action, detail_json FROM journal WHERE action IN ({marks}) ORDER BY seq",  # noqa: S608
            tuple(str(action) for action in _ACTIONS),
        )
        for at, action, text in rows:
            event = decode_detail(detail_type(action), text)
            fold.take(at, event, inside=since <= at < before)
    return Measures(len(fold.ended), tuple(_list_measures(fold)))


def newest_row(connection: sqlite3.Connection) -> int:
    """Return the seq of the newest row that a measure is made of; 0 without any."""
    newest = 0
    for action in _ACTIONS:
        row = connection.execute("SELECT max(seq) FROM journal WHERE action=?", (str(action),))
        newest = max(newest, row.fetchone()[0] or 0)
    return newest


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


class _Fold(Struct):
    """The sums over the rows so far."""

    workers: dict[tuple[str, int], _Worker] = field(default_factory=dict)
    ended: list[_Worker] = field(default_factory=list)
    lengths: dict[str, int] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    batches: Counter[str] = field(default_factory=Counter)
    days: dict[str, list[int]] = field(default_factory=dict)
    """Reviews by day: 1 for one that did not pass."""
    crashed: int = 0
    restarts: int = 0
    done: int = 0
    blocked: int = 0
    learned: dict[str, EstimateLearned] = field(default_factory=dict)
    """By subject; of one that was learned twice, the last counts."""

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
                self.learned[event.subject] = event
            case TaskRunStep() if inside and event.step in _REVIEWS and event.outcome:
                self.days.setdefault(at[:10], []).append(int(event.outcome != "PASS"))
            case BatchChanged() if event.outcome:
                self._batch(self._worker(event.chain_id, event.ordinal), event, inside)
            case WorkerChanged():
                self._end(self._worker(event.chain_id, event.ordinal), at, event, inside)

    def _worker(self, chain_id: str, ordinal: int) -> _Worker:
        return self.workers.setdefault((chain_id, ordinal), _Worker())

    def _batch(self, worker: _Worker, batch: BatchChanged, inside: bool) -> None:
        worker.batches += 1
        worker.completed += batch.outcome == "completed"
        worker.done += len(batch.done)
        worker.left_tasks |= bool(batch.interrupted)
        if inside:
            self.batches[batch.outcome] += 1
            self.done += len(batch.done)
            self.blocked += len(batch.blocked)

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


def _list_measures(fold: _Fold) -> Iterator[Measure]:
    ended, workers = fold.ended, len(fold.ended)
    context = [worker.tokens / worker.limit for worker in ended if worker.limit]
    most = f", at most {format_measure(max(context), 'share')}" if context else ""
    yield Measure(
        "Token limit used per worker",
        _mean(context),
        "share",
        context,
        detail=f"of its limit, {pluralize(workers, 'worker')}{most}",
        aim="below 100%",
        meets=lambda mean: mean < 1,
    )
    dropped = [worker.dropped for worker in ended]
    yield Measure(
        "Utility left out of a packet",
        max(dropped, default=None),
        "share",
        dropped,
        detail="at most, in one worker",
        more_is_better=False,
    )
    completed, batches = fold.batches["completed"], fold.batches.total()
    yield Measure(
        "Batches completed",
        _share(completed, batches),
        "share",
        [worker.completed / worker.batches for worker in ended if worker.batches],
        detail=f"{completed} of {batches}",
        aim="95% or more",
        meets=lambda share: share >= 0.95,
        more_is_better=True,
    )
    lengths = [float(count) for chain, count in fold.lengths.items() if chain in fold.started]
    yield Measure(
        "Workers per chain",
        _mean(lengths),
        "mean",
        lengths,
        "chain",
        f"{pluralize(len(lengths), 'chain')}, at most {max(lengths, default=0):.0f}",
    )
    tasks = [float(worker.done) for worker in ended]
    yield Measure(
        "Tasks per worker",
        _mean(tasks),
        "mean",
        tasks,
        detail=f"{fold.done} done, {fold.blocked} blocked",
        aim="8 or more",
        meets=lambda mean: mean >= 8,
        more_is_better=True,
    )
    seconds = [worker.seconds for worker in ended if worker.seconds is not None]
    whole = format_measure(sum(seconds), "time")
    yield Measure("Time per worker", _mean(seconds), "time", seconds, detail=f"{whole} in all")
    costs = [worker.cost_usd for worker in ended if worker.cost_usd is not None]
    total = sum(costs)
    spent = f"{format_measure(total, 'money')} in all" if costs else "no price is known"
    if costs and fold.done:
        spent += f", {format_measure(total / fold.done, 'money')} per task that is done"
    yield Measure(
        "Cost per worker", _mean(costs), "money", costs, detail=spent, more_is_better=False
    )
    reviews = [failed for day in fold.days.values() for failed in day]
    yield Measure(
        "Reviews failed",
        _mean(reviews),
        "share",
        [sum(day) / len(day) for day in fold.days.values()],
        "day",
        f"{sum(reviews)} of {len(reviews)}",
        more_is_better=False,
    )
    interrupted = sum(worker.left_tasks for worker in ended)
    yield Measure(
        "Workers interrupted mid-task",
        _share(interrupted, workers),
        "share",
        detail=f"{interrupted} of {workers}; {fold.crashed} died",
        aim="rare",
        meets=lambda share: share <= _RARE,
        more_is_better=False,
    )
    yield Measure(
        "Restarts by hand",
        float(fold.restarts),
        "number",
        detail="chains that a user resumed",
        aim="none",
        meets=(lambda restarts: not restarts) if lengths or fold.restarts else None,
        more_is_better=False,
    )
    yield _measure_estimates(list(fold.learned.values()))


def _measure_estimates(learned: Sequence[EstimateLearned]) -> Measure:
    """Measure how wrong the first estimates of sessions and task runs were, as shares of what was likely."""
    pairs = [
        (each, each.expected)
        for each in learned
        if isinstance(each.expected, Expected) and each.expected.waves.likely > 0
    ]
    waves = [_error(each.waves, expected.waves) for each, expected in pairs]
    tokens = [
        _error(each.tokens, expected.tokens)
        for each, expected in pairs
        if expected.tokens.likely > 0
    ]
    within = [expected.waves.low <= each.waves <= expected.waves.high for each, expected in pairs]
    words = "nothing that was estimated is done"
    if waves:
        off = format_measure(median(tokens) if tokens else None, "share")
        inside = format_measure(_mean(within), "share")
        words = f"{inside} of {len(waves)} within their range, tokens off {off}"
    return Measure(
        "Waves off their estimate",
        median(waves) if waves else None,
        "share",
        waves,
        "estimate",
        f"median; {words}",
        more_is_better=False,
    )


def _error(actual: float, expected: Range) -> float:
    return abs(actual - expected.likely) / expected.likely


def _mean(numbers: Sequence[float]) -> float | None:
    return _share(sum(numbers), len(numbers))


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None

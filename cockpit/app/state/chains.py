"""Chains as the tables have them: their workers, and the steps of their tasks.

A chain is read again, whole, when a row of the journal names it; of an ended one the tasks are read when its
tree is opened.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct, field

from cockpit.app.state.work import COLUMNS
from cockpit.core.clock import format_time
from cockpit.store.backlog import task_states
from cockpit.store.chains import chain_states, chains, workers
from cockpit.store.chains.chain_states import ChainStep
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker
from cockpit.store.journal.details import chains as details
from cockpit.store.journal.details.chains import Progress
from cockpit.store.journal.details.tasks import TaskTakenUp
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import newest_rows

PREFIXES = ("chain.", "batch.", "task.run.", "task.taken_up")
"""What begins rows of chains."""
ENDS = ("done", "blocked")
"""The steps with which a task's run ends."""
ENDED_SHOWN = 12
"""Chains at rest that are shown."""

_NEWEST = 100
"""Rows of batches and resumed tasks that are looked through."""
_ONLY_IN_JOURNAL = (
    Action.BATCH_CHANGED,
    Action.TASK_TAKEN_UP,
    Action.CHAIN_DELAYED,
    Action.CHAIN_NOTED,
)


class Retry(Struct, frozen=True):
    """A worker or a task that broke off and waits: until when, and which try comes then."""

    starts_at: str
    attempt: int


class Run(Struct):
    """A task in a chain. ``step`` is the one in progress, or the last; ``outcome`` is empty while it is
    in progress. ``session_id`` is the role's session that worked on it last; ``tokens`` and
    ``cost_usd`` are those of all of them. ``moment`` orders runs by their last change."""

    task_id: str
    chain_id: str
    ordinal: int = 0
    step: str = ""
    attempt: int = 1
    outcome: str = ""
    summary: str = ""
    session_id: str = ""
    tokens: int = 0
    cost_usd: float | None = None
    moment: int = 0
    retry: Retry | None = None
    """Set while its step waits after it broke off."""

    @property
    def ended(self) -> bool:
        return self.step in ENDS and bool(self.outcome)


class ShownWorker(Struct):
    """A worker with what the tables of sessions and the journal add to its row."""

    row: Worker
    status: str
    """That of its row; ``stopped`` where its chain ended without it."""
    tokens: int
    cost_usd: float | None
    batch: int
    size: int = 0
    tasks: dict[str, None] = field(default_factory=dict)
    """The tasks that no later worker worked on."""

    @property
    def live(self) -> bool:
        return self.status == "running"


class ShownChain(Struct):
    """A chain with its workers and tasks."""

    row: Chain
    progress: Progress
    workers: dict[int, ShownWorker]
    runs: dict[str, Run] = field(default_factory=dict)
    has_runs: bool = False
    """Whether ``runs`` is there; that of an ended chain is read when its tree is opened."""
    sessions: dict[str, Run] = field(default_factory=dict)
    """The task that each session of a role works on."""
    retry: Retry | None = None
    """Set while its next worker waits after the one before died."""
    unconfined: str = ""
    """What of it runs outside the sandbox: ``commands`` or a runner; empty for nothing."""

    @property
    def chain_id(self) -> str:
        return self.row.chain_id

    @property
    def status(self) -> str:
        return self.row.status

    @property
    def live(self) -> bool:
        return self.row.status in chains.OPEN

    @property
    def working(self) -> ShownWorker | None:
        """The worker that runs now; None between two workers and when the chain does not run."""
        last = next(reversed(self.workers.values()), None)
        return last if last is not None and last.live and self.live else None


class Chains:
    """The chains that the work pane shows."""

    def __init__(self, shown: Iterable[ShownChain] = ()) -> None:
        self.chains: dict[str, ShownChain] = {}
        self._run_of: dict[str, Run] = {}
        for chain in shown:
            self.put(chain)

    @property
    def has_retries(self) -> bool:
        """Whether a running chain has a worker or a task that waits after it broke off."""
        return any(
            chain.retry is not None or any(run.retry is not None for run in chain.runs.values())
            for chain in self.chains.values()
            if chain.live
        )

    def put(self, chain: ShownChain) -> None:
        """Put a chain into the place of what was known of it."""
        self.chains[chain.chain_id] = chain
        self._run_of |= chain.sessions

    def run_of(self, session_id: str) -> Run | None:
        """Return the task in a chain that a session works on; None for any other session."""
        return self._run_of.get(session_id)

    def words_of(self, session_id: str) -> str:
        """Return the worker that a role's session belongs to, ``ch-3 s2``; empty for other sessions."""
        run = self._run_of.get(session_id)
        return f"{run.chain_id} s{run.ordinal}" if run is not None else ""

    def newest(self, ended: int) -> Iterator[ShownChain]:
        """Yield the running chains, then ``ended`` others, the newest first."""
        rest = ended
        for chain in sorted(self.chains.values(), key=_moment, reverse=True):
            rest -= not chain.live
            if rest < 0:
                return
            yield chain


def _moment(chain: ShownChain) -> tuple[bool, str, int]:
    row = chain.row
    return chain.live, row.began_at if chain.live else row.ended_at or "", row.number


def read_chains(connection: sqlite3.Connection, now: datetime) -> list[ShownChain]:
    """Return the chains that the work pane shows: those that run whole, the others without their tasks."""
    shown, ends = chain_states.select_shown(connection, ENDED_SHOWN), _read_ends(connection)
    return [_read(connection, row, ends, now, row.status in chains.OPEN) for row in shown]


def read_chain(connection: sqlite3.Connection, chain_id: str, now: datetime) -> list[ShownChain]:
    """Return one chain, whole; nothing where it is not stored."""
    named = chain_states.select_named(connection, chain_id)
    return [_read(connection, row, _read_ends(connection), now, True) for row in named]


def read_progress(connection: sqlite3.Connection, chain: Chain) -> Progress:
    """Return how the tasks in the scope of a running chain stand now."""
    if chain.scope_kind != "all":
        return chains.count_progress(connection, chain)
    # Every task counts, and counting by status reads an index alone.
    counts = task_states.count_tasks(connection, COLUMNS)
    done = chain_states.count_done(connection, chain.chain_id)
    return Progress(
        total=sum(counts.values()) - counts["done"] + done,
        done=done,
        blocked=counts["blocked"],
        under_way=counts["in_progress"] + counts["review"],
        ready=task_states.count_ready(connection),
    )


def _read(
    connection: sqlite3.Connection,
    row: Chain,
    ends: Mapping[str, Progress],
    now: datetime,
    with_runs: bool,
) -> ShownChain:
    is_live = row.status in chains.OPEN
    at_end = ends.get(row.chain_id, Progress(0, 0, 0, 0, 0))
    progress = read_progress(connection, row) if is_live else at_end
    chain = ShownChain(row, progress, _read_workers(connection, row))
    if with_runs:
        _add_runs(chain, connection)
    if is_live:
        _add_newest(chain, connection, format_time(now))
    return chain


def _read_workers(connection: sqlite3.Connection, chain: Chain) -> dict[int, ShownWorker]:
    rows = workers.select_for_chain(connection, chain.chain_id)
    spent = chain_states.worker_usage(connection, chain.chain_id, rows)
    shown: dict[int, ShownWorker] = {}
    for row in rows:
        tokens, cost = spent.get(row.ordinal, (0, None))
        status = row.status
        if status != "running":
            # A worker that crashed had counted less than the sessions of its roles.
            tokens, cost = max(tokens, row.tokens), max(cost or 0.0, row.cost_usd)
        elif chain.status not in chains.OPEN:
            status = "stopped"
        shown[row.ordinal] = ShownWorker(row, status, tokens, cost, row.batches)
    return shown


def _add_runs(chain: ShownChain, connection: sqlite3.Connection) -> None:
    """Add the tasks of a chain, and to each worker those that no later worker worked on."""
    runs = chain.runs
    for step in chain_states.select_steps(connection, chain.chain_id):
        run = runs.setdefault(step.task_id, Run(step.task_id, chain.chain_id))
        _apply_step(run, step)
        if step.session_id:
            chain.sessions[step.session_id] = run
    for usage in chain_states.session_usage(connection, chain.chain_id):
        if (run_of := runs.get(usage.task_id)) is not None:
            run_of.tokens += usage.tokens
            if usage.cost_usd is not None:
                run_of.cost_usd = (run_of.cost_usd or 0.0) + usage.cost_usd
    for run in sorted(runs.values(), key=lambda run: run.moment):
        if (worker := chain.workers.get(run.ordinal)) is not None:
            worker.tasks.setdefault(run.task_id)
    chain.has_runs = True


def _apply_step(run: Run, step: ChainStep) -> None:
    run.ordinal, run.step, run.attempt = step.ordinal, step.step, step.attempt
    run.outcome, run.summary = step.outcome, step.summary
    run.session_id = step.session_id or run.session_id
    run.moment = max(run.moment, step.moment)


def _read_ends(connection: sqlite3.Connection) -> dict[str, Progress]:
    """Return how the tasks of the chains that ended last stood then, as the journal has it."""
    rows = newest_rows(connection, (Action.CHAIN_CHANGED,), _NEWEST)
    return {
        detail.chain_id: detail.progress
        for row in rows
        if isinstance(detail := row.detail, details.ChainChanged) and detail.what == "ended"
    }


def _add_newest(chain: ShownChain, connection: sqlite3.Connection, now: str) -> None:
    """Add what only the journal has: the running worker's batch, resumed tasks, and what waits."""
    worker = chain.working
    for row in newest_rows(connection, _ONLY_IN_JOURNAL, _NEWEST):
        detail = row.detail
        if getattr(detail, "chain_id", "") != chain.chain_id:
            continue
        match detail:
            case details.ChainNoted(what="unconfined") if row.at >= chain.row.began_at:
                chain.unconfined = detail.subject
            case details.ChainDelayed(task_id="") if (
                detail.ordinal not in chain.workers and detail.starts_at > now
            ):
                chain.retry = Retry(detail.starts_at, detail.attempt)
            case details.ChainDelayed() if detail.task_id and detail.starts_at > now:
                run = chain.runs.get(detail.task_id)
                if run is not None and not run.ended and run.step == detail.step:
                    run.retry = Retry(detail.starts_at, detail.attempt)
            case details.BatchChanged() if worker and detail.ordinal == worker.row.ordinal:
                worker.batch, worker.size = detail.batch, len(detail.task_ids)
            case TaskTakenUp() if worker and detail.ordinal == worker.row.ordinal:
                _take_up(chain, worker, detail.task_id)
            case _:
                continue


def _take_up(chain: ShownChain, worker: ShownWorker, task_id: str) -> None:
    """Move a task to the worker that resumed it."""
    if (run := chain.runs.get(task_id)) is None:
        return
    if (before := chain.workers.get(run.ordinal)) is not None and before is not worker:
        before.tasks.pop(task_id, None)
    worker.tasks.setdefault(task_id)
    run.ordinal = worker.row.ordinal

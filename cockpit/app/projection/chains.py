"""Chains folded from the journal: their workers, and the steps of their tasks.

No row of any shape raises, and every row costs the same, however many chains and workers there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from cockpit.app.projection.backlog import number_in
from cockpit.app.projection.header import SessionState
from cockpit.store.journal.details import chains as details
from cockpit.store.journal.details.tasks import TaskDelayed, TaskStep, TaskTakenUp
from cockpit.store.journal.journal import Row

PREFIXES = ("chain.", "batch.", "task.run.", "task.taken_up", "task.delayed")
LIVE = ("running", "draining")
ENDS = ("done", "blocked")
"""The steps with which a task's run ends."""

_ENDED = ("completed", "stopped", "failed", "limited")


class Retry(Struct, frozen=True):
    """A worker or a task that broke off and waits: until when, and which try comes then."""

    starts_at: str
    attempt: int


class Run(Struct):
    """A task in a chain. ``step`` is the one in progress, or the last; ``outcome`` is empty while it is
    in progress. ``session_id`` is the role's session that worked on it last; ``tokens`` and
    ``cost_usd`` are those of all of them."""

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
    seq: int = 0
    retry: Retry | None = None
    """Set while its step waits after it broke off."""

    @property
    def ended(self) -> bool:
        return self.step in ENDS and bool(self.outcome)


class ChainSession(Struct):
    """A worker: one process of a chain. ``status`` is running, clean, stopped or crashed."""

    ordinal: int
    status: str = "running"
    reason: str = ""
    tokens: int = 0
    token_limit: int = 0
    dropped_share: float = 0.0
    cost_usd: float | None = None
    batch: int = 0
    size: int = 0
    tasks: dict[str, None] = field(default_factory=dict)
    """The tasks that no later worker worked on."""

    @property
    def live(self) -> bool:
        return self.status == "running"


class Progress(Struct):
    """How many tasks of a chain's scope are in which status, without archived ones."""

    total: int = 0
    done: int = 0
    blocked: int = 0
    ready: int = 0
    under_way: int = 0
    """In progress or in review."""


class ChainState(Struct):
    """A chain as the journal records it; ``seq`` is its latest row. ``now``: it stops without waiting for
    running steps."""

    chain_id: str
    number: int
    scope_kind: str = "all"
    scope_id: str = ""
    status: str = "running"
    reason: str = ""
    now: bool = False
    branch: str = ""
    max_chains: int = 0
    report: str = ""
    unconfined: str = ""
    """What of it runs outside the sandbox: ``commands`` or a runner; empty for nothing."""
    seq: int = 0
    progress: Progress = field(default_factory=Progress)
    """How its tasks stood at its latest row that says so."""
    chain_sessions: dict[int, ChainSession] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    retry: Retry | None = None
    """Set while its next worker waits after the one before died."""
    has_runs: bool = True
    """Whether ``runs`` is there; that of an ended chain is read when its tree is opened."""

    @property
    def live(self) -> bool:
        return self.status in LIVE

    @property
    def working(self) -> ChainSession | None:
        """The worker that runs now; None between two workers and when the chain does not run."""
        last = next(reversed(self.chain_sessions.values()), None)
        return last if last is not None and last.live and self.live else None


class Chains:
    """Every chain that the journal records."""

    def __init__(self) -> None:
        self.chains: dict[str, ChainState] = {}
        self._live: dict[str, None] = {}
        self._rest: dict[str, None] = {}
        self._open: dict[str, Run] = {}
        self._run_of: dict[str, Run] = {}

    @property
    def has_retries(self) -> bool:
        """Whether a running chain has a worker or a task that waits after it broke off."""
        return any(
            chain.retry is not None or any(run.retry is not None for run in chain.runs.values())
            for chain in (self.chains[chain_id] for chain_id in self._live)
        )

    def apply(self, row: Row) -> None:
        """Fold one row whose action begins with one of :data:`PREFIXES`."""
        detail = row.detail
        if not isinstance(detail, _OF_CHAIN) or not detail.chain_id:
            return  # A task that runs outside a chain.
        chain_id = detail.chain_id
        chain = self.chains.get(chain_id)
        if chain is None:
            chain = self.chains[chain_id] = ChainState(chain_id, number_in(chain_id))
        chain.seq = row.seq
        match detail:
            case details.ChainState() | details.ChainReported():
                _chain(chain, row.action.partition(".")[2], detail)
            case details.ChainUnconfined():
                chain.unconfined = detail.subject
            case details.WorkerState():
                _worker(chain, detail)
            case details.BatchStarted() | details.BatchCompleted():
                _batch(chain, detail)
            case details.WorkerDelayed():
                chain.retry = Retry(detail.starts_at, detail.attempt)
            case TaskDelayed() if detail.task_id in chain.runs:
                chain.runs[detail.task_id].retry = Retry(detail.starts_at, detail.attempt)
            case TaskStep() | TaskTakenUp() if detail.task_id:
                self._step(chain, detail, row.seq)
        if isinstance(detail, _WITH_PROGRESS) and detail.progress is not None:
            counts = detail.progress
            chain.progress = Progress(
                counts.total, counts.done, counts.blocked, counts.ready, counts.under_way
            )
        before, after = (self._rest, self._live) if chain.live else (self._live, self._rest)
        before.pop(chain_id, None)
        after.setdefault(chain_id)

    def add(self, chain: ChainState) -> None:
        """Add a chain as the tables have it, or replace it; it counts as the newest of its kind."""
        self.chains[chain.chain_id] = chain
        self._live.pop(chain.chain_id, None)
        self._rest.pop(chain.chain_id, None)
        (self._live if chain.live else self._rest)[chain.chain_id] = None

    def take(self, other: Chains) -> None:
        """Add the chains of ``other``, or replace those that are here in their place."""
        for chain_id, chain in other.chains.items():
            before = self.chains.get(chain_id)
            if before is not None and before.live == chain.live:
                self.chains[chain_id] = chain
            else:
                self.add(chain)
        self._open.update(other._open)
        self._run_of.update(other._run_of)

    def missing(self, rows: Sequence[Row]) -> set[str]:
        """The chains that ``rows`` continue and that are not here, or not with their tasks."""
        missing: set[str] = set()
        for row in rows:
            detail = row.detail if row.action.startswith(PREFIXES) else None
            if not isinstance(detail, _OF_CHAIN) or isinstance(detail, details.ChainReported):
                continue
            chain = self.chains.get(detail.chain_id)
            if detail.chain_id and (chain is None or not chain.has_runs):
                missing.add(detail.chain_id)
        begun = {
            row.read(details.ChainCreated).chain_id for row in rows if row.action == "chain.created"
        }
        return missing - begun

    def join(self, session_id: str, run: Run) -> None:
        """Record that a session works on a task in a chain."""
        self._run_of[session_id] = run

    def reopen(self, run: Run) -> None:
        """Record a run as the tables have it: sessions that begin for its task work on it."""
        if not run.ended:
            self._open[run.task_id] = run

    def session(self, session: SessionState) -> None:
        """Record that a role's session began; it works on the step of its task that is in progress."""
        run = self._open.get(session.task_id) if session.role and session.task_id else None
        if run is not None:
            run.session_id = session.session_id
            self._run_of[session.session_id] = run

    def spent(self, session_id: str, tokens: int, cost_usd: float | None) -> None:
        """Count the cost of a model call in a session for its task and its worker."""
        run = self._run_of.get(session_id)
        if run is None:
            return
        chain = self.chains[run.chain_id]
        at = chain.chain_sessions.get(run.ordinal)
        for each in (run, at) if at is not None and at.live else (run,):
            each.tokens += tokens
            if cost_usd is not None:
                each.cost_usd = (each.cost_usd or 0.0) + cost_usd

    def run_of(self, session_id: str) -> Run | None:
        """Return the task in a chain that a session works on; None for any other session."""
        return self._run_of.get(session_id)

    def words_of(self, session_id: str) -> str:
        """Return the worker that a role's session belongs to, ``ch-3 s2``; empty for other sessions."""
        run = self._run_of.get(session_id)
        return f"{run.chain_id} s{run.ordinal}" if run is not None else ""

    def newest(self, ended: int) -> Iterator[ChainState]:
        """Yield the running chains, then ``ended`` others, the newest first."""
        for at, chain_id in enumerate([*reversed(self._live), *reversed(self._rest)]):
            if at >= len(self._live) + ended:
                return
            yield self.chains[chain_id]

    def _step(self, chain: ChainState, detail: TaskStep | TaskTakenUp, seq: int) -> None:
        task_id = detail.task_id
        run = chain.runs.get(task_id)
        if run is None:
            run = chain.runs[task_id] = Run(task_id, chain.chain_id)
        before = chain.chain_sessions.get(run.ordinal)
        worker = _at(chain, detail.ordinal)
        if before is not None and before is not worker:
            before.tasks.pop(task_id, None)
        worker.tasks.setdefault(task_id)
        run.ordinal, run.seq, run.retry = worker.ordinal, seq, None
        if isinstance(detail, TaskTakenUp):
            self._open[task_id] = run
            return
        run.step = detail.step or run.step
        run.attempt = detail.attempt or 1
        run.outcome = detail.outcome
        run.summary = detail.summary
        if detail.session_id:
            run.session_id = detail.session_id
            self._run_of.setdefault(detail.session_id, run)
        if run.ended:
            self._open.pop(task_id, None)
        else:
            self._open[task_id] = run


_OF_CHAIN = (
    details.ChainState,
    details.ChainReported,
    details.ChainFollowed,
    details.ChainRequested,
    details.ChainUnconfined,
    details.WorkerState,
    details.WorkerDelayed,
    details.BatchStarted,
    details.BatchCompleted,
    TaskStep,
    TaskDelayed,
    TaskTakenUp,
)
_WITH_PROGRESS = (
    details.ChainState,
    details.WorkerState,
    details.BatchStarted,
    details.BatchCompleted,
)


def _at(chain: ChainState, ordinal: int) -> ChainSession:
    worker = chain.chain_sessions.get(ordinal)
    if worker is None:
        worker = chain.chain_sessions[ordinal] = ChainSession(ordinal)
    return worker


def _batch(chain: ChainState, detail: details.BatchStarted | details.BatchCompleted) -> None:
    worker = _at(chain, detail.ordinal)
    worker.batch = detail.batch or worker.batch
    if isinstance(detail, details.BatchStarted):
        worker.size = len(detail.task_ids)
        return
    worker.size = 0
    share = detail.pressure.dropped_share
    if isinstance(share, int | float):
        worker.dropped_share = share


def _chain(
    chain: ChainState, event: str, detail: details.ChainState | details.ChainReported
) -> None:
    if isinstance(detail, details.ChainReported):
        chain.report = detail.path
        return
    chain.retry = None
    chain.scope_kind = detail.scope.kind or chain.scope_kind
    chain.scope_id = detail.scope.id or chain.scope_id
    chain.reason = detail.reason
    chain.branch = detail.branch or chain.branch
    chain.max_chains = detail.max_chains or chain.max_chains
    match detail:
        case details.ChainCreated() | details.ChainResumed():
            chain.status, chain.now, chain.unconfined = "running", False, ""
        case details.ChainDraining():
            chain.status, chain.now = "draining", detail.now
        case _:
            chain.status = detail.status if detail.status in _ENDED else event
            for worker in chain.chain_sessions.values():
                if worker.live:
                    worker.status = "stopped"


def _worker(chain: ChainState, detail: details.WorkerState) -> None:
    worker = _at(chain, detail.ordinal)
    worker.reason = detail.reason
    worker.token_limit = detail.token_limit or worker.token_limit
    worker.dropped_share = detail.dropped_share
    if isinstance(detail, details.WorkerStarted):
        worker.status, chain.retry = "running", None
        return
    worker.size = 0
    crashed = isinstance(detail, details.WorkerCrashed)
    worker.status = "crashed" if crashed else detail.status or "clean"
    # A worker that crashed had counted less than the sessions of its roles.
    worker.tokens = max(worker.tokens, detail.tokens)
    if detail.cost_usd is not None:
        worker.cost_usd = max(worker.cost_usd or 0.0, detail.cost_usd)

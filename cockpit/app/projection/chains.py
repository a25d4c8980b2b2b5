"""Chains folded from the journal: their sessions, and the steps that tasks take in them.

Total as every projection, and of constant cost a row: a hundred chains of twenty sessions cost no
more to follow than one. What other processes do arrives here as rows like any other. Source: design
of work, "Chains".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cockpit.app.projection import row_detail as read
from cockpit.app.projection.backlog import number_in
from cockpit.app.projection.header import SessionState
from cockpit.store.journal.journal import Row

PREFIXES = ("chain.", "batch.", "task.run.", "task.taken_up")
LIVE = ("running", "draining")
ENDS = ("done", "blocked")
"""The steps with which a task's run ends."""

_ENDED = ("completed", "stopped", "failed", "limited")


@dataclass(slots=True)
class Run:
    """A task in a chain. ``step`` is the one under way, or the last; ``outcome`` is empty while it is
    under way. ``session_id`` is the role's session that worked on it last; ``tokens`` and
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

    @property
    def ended(self) -> bool:
        return self.step in ENDS and bool(self.outcome)


@dataclass(slots=True)
class ChainSession:
    """One session of a chain: one process. ``status`` is running, clean, stopped or crashed."""

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
    """The tasks that it worked on last of all sessions."""

    @property
    def live(self) -> bool:
        return self.status == "running"


@dataclass(slots=True)
class Progress:
    """How the tasks in a chain's scope stand, archived ones aside."""

    total: int = 0
    done: int = 0
    blocked: int = 0
    ready: int = 0


@dataclass(slots=True)
class ChainState:
    """A chain as the journal tells it; ``seq`` is its latest row. ``now``: it was told not to wait
    for what runs."""

    chain_id: str
    number: int
    scope_kind: str = "all"
    scope_id: str = ""
    status: str = "running"
    reason: str = ""
    now: bool = False
    branch: str = ""
    max_sessions: int = 0
    report: str = ""
    seq: int = 0
    told: Progress = field(default_factory=Progress)
    """How its tasks stood at its latest row that tells it."""
    chain_sessions: dict[int, ChainSession] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)

    @property
    def live(self) -> bool:
        return self.status in LIVE

    @property
    def working(self) -> ChainSession | None:
        """The session that runs now; None between two, and when the chain rests."""
        last = next(reversed(self.chain_sessions.values()), None)
        return last if last is not None and last.live and self.live else None


class Chains:
    """Every chain that the journal tells of."""

    def __init__(self) -> None:
        self.found: dict[str, ChainState] = {}
        self._live: dict[str, None] = {}
        self._rest: dict[str, None] = {}
        self._open: dict[str, Run] = {}
        self._run_of: dict[str, Run] = {}

    def apply(self, row: Row) -> None:
        """Fold one row whose action begins with one of :data:`PREFIXES`."""
        chain_id = read.text(row.raw_detail(), "chain_id")
        if not chain_id:
            return  # a task that is done by itself
        chain = self.found.get(chain_id)
        if chain is None:
            chain = self.found[chain_id] = ChainState(chain_id, number_in(chain_id))
        chain.seq = row.seq
        _progress(chain, read.inner(row.raw_detail(), "progress"))
        kind = row.action
        if kind.startswith("chain.session."):
            _chain_session(chain, kind.rpartition(".")[2], row.raw_detail())
        elif kind.startswith("chain."):
            _chain(chain, kind.partition(".")[2], row.raw_detail())
        elif kind.startswith("batch."):
            found = _at(chain, row.raw_detail())
            found.batch = read.number(row.raw_detail(), "batch") or found.batch
            started = kind == "batch.started"
            found.size = len(read.words(row.raw_detail(), "task_ids")) if started else 0
            share = read.real(read.inner(row.raw_detail(), "pressure"), "dropped_share")
            found.dropped_share = found.dropped_share if share is None else share
        elif task_id := read.text(row.raw_detail(), "task_id"):
            self._step(chain, task_id, row)
        before, after = (self._rest, self._live) if chain.live else (self._live, self._rest)
        before.pop(chain_id, None)
        after.setdefault(chain_id)

    def session(self, session: SessionState) -> None:
        """A role's session began: it takes the step of its task that is under way."""
        run = self._open.get(session.task_id) if session.role and session.task_id else None
        if run is not None:
            run.session_id = session.session_id
            self._run_of[session.session_id] = run

    def spent(self, session_id: str, tokens: int, cost_usd: float | None) -> None:
        """A model answered in a session: what it cost counts for the task, and for who does it."""
        run = self._run_of.get(session_id)
        if run is None:
            return
        chain = self.found[run.chain_id]
        at = chain.chain_sessions.get(run.ordinal)
        for each in (run, at) if at is not None and at.live else (run,):
            each.tokens += tokens
            if cost_usd is not None:
                each.cost_usd = (each.cost_usd or 0.0) + cost_usd

    def run_of(self, session_id: str) -> Run | None:
        """The task in a chain that a session works on; None for any other session."""
        return self._run_of.get(session_id)

    def words_of(self, session_id: str) -> str:
        """The session of a chain that a role's session belongs to: ``ch-3 s2``; empty for others."""
        run = self._run_of.get(session_id)
        return f"{run.chain_id} s{run.ordinal}" if run is not None else ""

    def newest(self, ended: int) -> Iterator[ChainState]:
        """Chains that run, then ``ended`` that do not, each the newest first."""
        for at, chain_id in enumerate([*reversed(self._live), *reversed(self._rest)]):
            if at >= len(self._live) + ended:
                return
            yield self.found[chain_id]

    def _step(self, chain: ChainState, task_id: str, row: Row) -> None:
        detail = row.raw_detail()
        run = chain.runs.get(task_id)
        if run is None:
            run = chain.runs[task_id] = Run(task_id, chain.chain_id)
        before = chain.chain_sessions.get(run.ordinal)
        at = _at(chain, detail)
        if before is not None and before is not at:
            before.tasks.pop(task_id, None)
        at.tasks.setdefault(task_id)
        run.ordinal, run.seq = at.ordinal, row.seq
        if row.action == "task.taken_up":
            self._open[task_id] = run
            return
        run.step = read.text(detail, "step") or run.step
        run.attempt = read.number(detail, "attempt") or 1
        run.outcome = read.text(detail, "outcome")
        run.summary = read.text(detail, "summary")
        if session_id := read.text(detail, "session_id"):
            run.session_id = session_id
            self._run_of.setdefault(session_id, run)
        if run.ended:
            self._open.pop(task_id, None)
        else:
            self._open[task_id] = run


def _at(chain: ChainState, detail: read.Detail) -> ChainSession:
    ordinal = read.number(detail, "ordinal")
    found = chain.chain_sessions.get(ordinal)
    if found is None:
        found = chain.chain_sessions[ordinal] = ChainSession(ordinal)
    return found


def _chain(chain: ChainState, what: str, detail: read.Detail) -> None:
    if what == "followed":
        return  # why it began; that it did is a row of its own
    if what == "reported":
        chain.report = read.text(detail, "path")
        return
    scope = read.inner(detail, "scope")
    chain.scope_kind = read.text(scope, "kind") or chain.scope_kind
    chain.scope_id = read.text(scope, "id") or chain.scope_id
    chain.reason = read.text(detail, "reason")
    chain.branch = read.text(detail, "branch") or chain.branch
    chain.max_sessions = read.number(detail, "max_chains") or chain.max_sessions
    if what in ("created", "resumed"):
        chain.status, chain.now = "running", False
    elif what == "draining":
        chain.status, chain.now = "draining", read.truth(detail, "now")
    else:
        told = read.text(detail, "status")
        chain.status = told if told in _ENDED else what
        for each in chain.chain_sessions.values():
            if each.live:
                each.status = "stopped"


def _chain_session(chain: ChainState, what: str, detail: read.Detail) -> None:
    found = _at(chain, detail)
    found.reason = read.text(detail, "reason")
    found.token_limit = read.number(detail, "token_limit") or found.token_limit
    found.dropped_share = read.real(detail, "dropped_share") or 0.0
    if what == "started":
        found.status = "running"
        return
    found.size = 0
    found.status = "crashed" if what == "crashed" else read.text(detail, "status") or "clean"
    # A session that died told less than its roles' sessions did.
    found.tokens = max(found.tokens, read.number(detail, "tokens"))
    cost = read.real(detail, "cost_usd")
    if cost is not None:
        found.cost_usd = max(found.cost_usd or 0.0, cost)


def _progress(chain: ChainState, detail: read.Detail) -> None:
    if detail:
        chain.told = Progress(
            *(read.number(detail, name) for name in ("total", "done", "blocked", "ready"))
        )

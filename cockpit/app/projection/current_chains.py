"""Chains as the tables have them: those that run whole, the last that ended without their tasks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from cockpit.app.projection.backlog import COLUMNS
from cockpit.app.projection.chain_trees import ENDED_SHOWN
from cockpit.app.projection.chains import Chains, ChainSession, ChainState, Progress, Retry, Run
from cockpit.store.backlog import task_states
from cockpit.store.chains import chain_states, chains, workers
from cockpit.store.chains.chain_states import ChainStep, Usage
from cockpit.store.chains.chains import Chain
from cockpit.store.journal.details import chains as details
from cockpit.store.journal.details.tasks import TaskDelayed, TaskTakenUp
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import newest_rows

_NEWEST = 100
"""Rows of batches and resumed tasks that are looked through."""


def read_chains(connection: sqlite3.Connection) -> Chains:
    """Return the chains that the work pane shows."""
    state = Chains()
    stored = chain_states.select_shown(connection, ENDED_SHOWN)
    for chain in stored:
        state.add(_chain(connection, chain))
        if chain.status in chains.OPEN:
            add_runs(state, connection, chain.chain_id)
    _add_ended_progress(state, connection)
    _add_newest(state, connection)
    return state


def read_chain(connection: sqlite3.Connection, chain_id: str) -> Chains:
    """Return one chain, whole; one that is not stored is left out."""
    state = Chains()
    for chain in chain_states.select_named(connection, chain_id):
        state.add(_chain(connection, chain))
        add_runs(state, connection, chain_id)
    _add_ended_progress(state, connection)
    _add_newest(state, connection)
    return state


def add_runs(state: Chains, connection: sqlite3.Connection, chain_id: str) -> None:
    """Add the tasks of a chain, and of each worker those that no later worker worked on."""
    chain = state.chains[chain_id]
    usage = chain_states.session_usage(connection, chain_id)
    runs: dict[str, Run] = {}
    for step in chain_states.select_steps(connection, chain_id):
        run = runs.get(step.task_id)
        if run is None:
            run = runs[step.task_id] = Run(step.task_id, chain_id)
        _apply_step(run, step)
        if step.session_id:
            state.join(step.session_id, run)
    for each in usage:
        _spend(runs.get(each.task_id), each)
    for place, run in enumerate(sorted(runs.values(), key=lambda run: run.seq)):
        run.seq = place - len(runs)  # before every row that comes
    for run in runs.values():
        worker = chain.chain_sessions.get(run.ordinal)
        if worker is not None:
            worker.tasks.setdefault(run.task_id)
        state.reopen(run)
    chain.runs, chain.has_runs = runs, True


def _chain(connection: sqlite3.Connection, stored: Chain) -> ChainState:
    chain = ChainState(
        stored.chain_id,
        stored.number,
        scope_kind=stored.scope_kind,
        scope_id=stored.scope_id,
        status=stored.status,
        reason=stored.reason,
        now=stored.stop_now and stored.status == "draining",
        branch=stored.branch,
        max_chains=stored.max_chains,
        report=stored.report_path or "",
        has_runs=False,
    )
    if chain.live:
        chain.unconfined = _unconfined(connection, stored.chain_id)
        chain.progress = _progress(connection, stored)
    rows = workers.select_for_chain(connection, stored.chain_id)
    spent = chain_states.worker_usage(connection, stored.chain_id, rows)
    for worker in rows:
        tokens, cost = spent.get(worker.ordinal, (0, None))
        ended = worker.status != "running"
        if ended:
            # A worker that crashed had counted less than the sessions of its roles.
            tokens, cost = max(tokens, worker.tokens), max(cost or 0.0, worker.cost_usd)
        chain.chain_sessions[worker.ordinal] = ChainSession(
            worker.ordinal, worker.status, worker.reason, tokens, worker.token_limit,
            worker.dropped_share, cost, worker.batches,
        )  # fmt: skip
        if ended is False and stored.status not in chains.OPEN:
            chain.chain_sessions[worker.ordinal].status = "stopped"
    return chain


def _unconfined(connection: sqlite3.Connection, chain_id: str) -> str:
    rows = newest_rows(connection, (Action.CHAIN_UNCONFINED,), _NEWEST)
    read = [row.read(details.ChainUnconfined) for row in rows]
    return next((each.subject for each in read[::-1] if each.chain_id == chain_id), "")


def _progress(connection: sqlite3.Connection, stored: Chain) -> Progress:
    if stored.scope_kind == "all":  # every task counts, and counting by status reads an index alone
        counts = task_states.count_tasks(connection, COLUMNS)
        ready = task_states.count_ready(connection)
        done = chain_states.count_done(connection, stored.chain_id)
        total = sum(counts.values()) - counts["done"] + done
        return Progress(
            total, done, counts["blocked"], ready, counts["in_progress"] + counts["review"]
        )
    progress = chains.count_progress(connection, stored)
    return Progress(
        progress.total, progress.done, progress.blocked, progress.ready, progress.under_way
    )


def _apply_step(run: Run, step: ChainStep) -> None:
    run.ordinal, run.step, run.attempt = step.ordinal, step.step, step.attempt
    run.outcome, run.summary = step.outcome, step.summary
    run.session_id = step.session_id or run.session_id
    run.seq = max(run.seq, step.moment)


def _spend(run: Run | None, usage: Usage) -> None:
    if run is not None:
        run.tokens += usage.tokens
        if usage.cost_usd is not None:
            run.cost_usd = (run.cost_usd or 0.0) + usage.cost_usd


def _add_ended_progress(state: Chains, connection: sqlite3.Connection) -> None:
    """Set how the tasks of each ended chain stood at its end."""
    ends = (Action.CHAIN_COMPLETED, Action.CHAIN_STOPPED)
    for row in newest_rows(connection, ends, _NEWEST):
        detail = row.detail
        if isinstance(detail, details.ChainState) and detail.progress is not None:
            chain = state.chains.get(detail.chain_id)
            if chain is not None and not chain.live:
                counts = detail.progress
                chain.progress = Progress(
                    counts.total, counts.done, counts.blocked, counts.ready, counts.under_way
                )


def _add_newest(state: Chains, connection: sqlite3.Connection) -> None:
    """Add what only the journal has: the batches of running workers, and the tasks they resumed."""
    live = {each.chain_id: each for each in _live(state)}
    actions = (
        Action.BATCH_STARTED,
        Action.BATCH_COMPLETED,
        Action.TASK_TAKEN_UP,
        Action.TASK_DELAYED,
        Action.CHAIN_SESSION_DELAYED,
    )
    for row in newest_rows(connection, actions, _NEWEST) if live else ():
        detail = row.detail
        if isinstance(detail, details.WorkerDelayed | TaskDelayed):
            _add_retry(live.get(detail.chain_id), detail)
            continue
        if not isinstance(detail, details.BatchStarted | details.BatchCompleted | TaskTakenUp):
            continue
        chain = live.get(detail.chain_id)
        worker = chain.working if chain is not None else None
        if chain is None or worker is None or worker.ordinal != detail.ordinal:
            continue
        progress = chain.progress
        if not isinstance(detail, TaskTakenUp) or detail.task_id in chain.runs:
            state.apply(row)
        chain.progress = progress  # the tables are newer


def _add_retry(chain: ChainState | None, detail: details.WorkerDelayed | TaskDelayed) -> None:
    """Add that a worker or a task waits; one whose time has come is drawn as if it did not."""
    retry = Retry(detail.starts_at, detail.attempt)
    if chain is None:
        return
    if isinstance(detail, TaskDelayed):
        run = chain.runs.get(detail.task_id)
        if run is not None and not run.ended and run.step == detail.step:
            run.retry = retry
    elif detail.ordinal not in chain.chain_sessions:
        chain.retry = retry


def _live(state: Chains) -> Iterable[ChainState]:
    return [each for each in state.chains.values() if each.live]

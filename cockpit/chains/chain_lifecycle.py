"""A chain's life: creating and resuming it, what it has used, and whether another worker follows.

See ``docs/reference/chains.md``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.access.git_folders import locate_git_folders
from cockpit.chains.claim_batch import has_work, scope_of, unfinished_tasks
from cockpit.chains.handover import WorkerLimits
from cockpit.core.clock import parse_time
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.text import pluralize
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES
from cockpit.store.backlog.queue_scope import count_ready
from cockpit.store.chains import chains, task_runs, workers, worktrees
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.end_reasons import CHAIN_LIMIT, HANDOVER_REASONS
from cockpit.store.chains.workers import Worker
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.tasks.git import WorktreeError, git, try_git
from cockpit.tasks.model_outage import NO_MODEL
from cockpit.tasks.worktree import ensure_chain_worktree, head_commit

MAX_CRASHES = 5
"""So many workers that died in a row, without a finished step between them, fail the chain."""


class ChainRefused(CockpitError):
    """A chain cannot start or resume like this."""

    code = "usage"


class ChainOptions(Struct, frozen=True):
    """What ``cockpit work`` asks a chain to do."""

    scope_kind: str
    """``epic``, ``story`` or ``all``."""
    scope_id: str = ""
    headless: bool = False
    batch: str = "auto"
    """``auto`` or the number of tasks at once."""
    approve: str = "ask"
    """The approval policy of the roles' sessions."""
    model: str | None = None
    runner: str | None = None
    max_chains: int = 10
    """The largest number of workers."""
    max_cost: float | None = None
    """Limit in US dollars."""
    max_wall_s: float | None = None
    """Limit in seconds that workers run."""


class ChainUsage(Struct, frozen=True):
    """What a chain has used so far."""

    workers: int
    """Workers that ended cleanly or were stopped."""
    tokens: int
    cost_usd: float
    wall_s: float
    """Seconds that all workers ran, those that died included."""
    unpriced_tokens: int = 0
    """Tokens of ``tokens`` whose price is not known, so that ``cost_usd`` is without them."""


class ChainDecision(Struct, frozen=True):
    """What follows a worker: another one (``status`` is empty), or the chain's end."""

    status: str = ""
    reason: str = ""

    @property
    def continues(self) -> bool:
        """Whether another worker follows."""
        return not self.status


async def create_chain(
    store: Store,
    place: ProjectPaths,
    options: ChainOptions,
    *,
    within: Callable[[Tx, Chain], None] | None = None,
) -> Chain:
    """Create a chain with its branch and worktree, owned by this process.

    ``within`` runs in the creating transaction; an error of it leaves no chain. Raises
    :class:`ChainRefused` for a scope without tasks, ``NotFound`` for an unknown scope, and
    ``WorktreeError``.
    """
    base_commit = await head_commit(place)
    symbolic = await try_git(place.root, "symbolic-ref", "--quiet", "--short", "HEAD")
    branch = symbolic.text.strip()
    branches = await git(
        place.home, "for-each-ref", "--format=%(refname:short)", "refs/heads/cockpit/"
    )
    taken = frozenset(branches.splitlines())

    def insert(tx: Tx) -> Chain:
        chain = chains.create(
            tx,
            scope_kind=options.scope_kind,
            scope_id=_scope_id(tx.connection, options),
            headless=options.headless,
            batch=options.batch,
            approve=options.approve,
            model=_absolute_model(options.model),
            runner=options.runner,
            max_chains=options.max_chains,
            max_cost=options.max_cost,
            max_wall_s=options.max_wall_s,
            base_branch=branch,
            base_commit=base_commit,
            taken=taken,
        )
        if within is not None:
            within(tx, chain)
        if not has_work(tx.connection, chain, tx.now()):
            raise ChainRefused(_nothing_to_do(tx.connection, chain))
        return chain

    _check_writable(place)
    chain = await store.write(insert)
    try:
        await ensure_chain_worktree(store, place, chain.branch, chain_id=chain.chain_id)
    except (WorktreeError, OSError) as error:
        reason = str(error)
        await store.write(lambda tx: _end_unborn(tx, chain, reason))
        raise
    return chain


def _check_writable(place: ProjectPaths) -> None:
    """Raise ``WorktreeError`` for a repository in which no branch can be made."""
    folders = locate_git_folders(place.home)
    if folders is not None and not os.access(folders.common, os.W_OK):
        raise WorktreeError(
            f"{folders.common} cannot be written, and a chain needs a branch there. Make it writable, or"
            " run the chain in a clone (`git clone`)."
        )


def _end_unborn(tx: Tx, chain: Chain, reason: str) -> None:
    """End a chain whose branch could not be made; its worktree is not there."""
    for worktree in worktrees.select(tx.connection):
        if worktree.task_id is None and worktree.chain_id == chain.chain_id:
            worktrees.set_status(tx, worktree.name, "removed")
    chains.end(tx, chain.chain_id, "failed", f"it could not begin: {reason}"[:500])


def _nothing_to_do(connection: sqlite3.Connection, chain: Chain) -> str:
    """Say why no task of a new chain's scope can start, and what to do."""
    progress = chains.count_progress(connection, chain)
    if not progress.total:
        return (
            f"There is no task in {chain.scope} to do. Add some with `cockpit tasks add` or"
            " `cockpit plan`."
        )
    waiting = progress.total - progress.blocked - progress.under_way
    parts = [
        f"{progress.blocked} blocked (`cockpit tasks unblock ID`)" if progress.blocked else "",
        f"{progress.under_way} in progress elsewhere" if progress.under_way else "",
        f"{waiting} waiting for others (`cockpit tasks queue --why`)" if waiting else "",
    ]
    return f"No task in {chain.scope} can start: {', '.join(filter(None, parts))}."


def resume_chain(tx: Tx, chain_id: str, changes: Mapping[str, Any], *, more_workers: int) -> Chain:
    """Run a chain again that has stopped, owned by this process.

    ``changes`` are new values of fields of :class:`ChainOptions`. A chain that had all of its workers
    gets ``more_workers``. Raises :class:`ChainRefused` where a limit of cost or time would end it at
    once, ``Stale`` while another process runs it, and ``IllegalTransition`` for a complete one.
    """
    chain = chains.acquire(tx, chain_id)
    limits = dict(changes)
    if "model" in limits:
        limits["model"] = _absolute_model(limits["model"])
    used = chain_usage(tx.connection, chain)
    if "max_chains" not in limits and used.workers >= chain.max_chains:
        limits["max_chains"] = used.workers + more_workers
    resumed = chains.resume(tx, chain_id, **limits)
    if reached := limit_reached(resumed, used):
        raise ChainRefused(
            f"{chain_id} has reached {reached}. Raise it with the same option, or start a new chain,"
            " which resumes its tasks."
        )
    return resumed


def chain_usage(connection: sqlite3.Connection, chain: Chain) -> ChainUsage:
    """Return what the chain has used so far, workers that died included."""
    tokens, cost, unpriced = connection.execute(
        "SELECT coalesce(sum(input_tokens+output_tokens),0), coalesce(sum(cost_usd),0.0),"
        " coalesce(sum(CASE WHEN cost_usd IS NULL THEN input_tokens+output_tokens END),0)"
        " FROM sessions WHERE session_id IN (SELECT session_id FROM task_runs"
        " WHERE chain_id=? AND session_id IS NOT NULL)",
        (chain.chain_id,),
    ).fetchone()
    chain_workers = workers.select_for_chain(connection, chain.chain_id)
    wall = sum(
        (
            parse_time(worker.ended_at or worker.beat_at) - parse_time(worker.started_at)
        ).total_seconds()
        for worker in chain_workers
    )
    return ChainUsage(
        workers=sum(worker.status in ("clean", "stopped") for worker in chain_workers),
        tokens=int(tokens),
        cost_usd=float(cost),
        wall_s=wall,
        unpriced_tokens=int(unpriced),
    )


def worker_limits(chain: Chain, used: ChainUsage, *, tokens: int) -> WorkerLimits:
    """Return the next worker's limits: its own ``tokens``, and the rest of the chain's cost and time."""
    cost, wall = chain.max_cost, chain.max_wall_s
    return WorkerLimits(
        tokens=tokens,
        cost_usd=None if cost is None else max(0.0, cost - used.cost_usd),
        wall_s=None if wall is None else max(0.0, wall - used.wall_s),
    )


def decide_chain(connection: sqlite3.Connection, chain: Chain, now: str) -> ChainDecision:
    """Decide what follows at ``now``, when no worker of the chain runs."""
    chain_workers = workers.select_for_chain(connection, chain.chain_id)
    tasks_left = len(unfinished_tasks(connection, chain, now))
    tasks_left += count_ready(connection, scope_of(chain))
    crashes = count_crashes(connection, chain, chain_workers)
    usage = chain_usage(connection, chain)
    decision = decide_from(chain, chain_workers, tasks_left, usage, crashes)
    progress = chains.count_progress(connection, chain)
    if decision.status == "completed" and progress.done < progress.total:
        left = pluralize(progress.total - progress.done, "task")
        return ChainDecision("completed", f"{left} not done, of which {progress.blocked} blocked")
    return decision


def decide_from(
    chain: Chain,
    chain_workers: Sequence[Worker],
    tasks_left: int,
    used: ChainUsage,
    crashes: int,
) -> ChainDecision:
    """Decide as :func:`decide_chain`, from values alone.

    ``tasks_left`` counts tasks that a worker could resume or start, ``crashes`` the workers that died
    last, in a row and without a finished step.
    """
    if chain.status == "draining":
        return ChainDecision("stopped", "stopped at once" if chain.stop_now else "drained")
    if not tasks_left:
        return ChainDecision("completed")
    if crashes >= MAX_CRASHES:
        return ChainDecision(
            "failed", f"{crashes} workers died in a row: {chain_workers[-1].reason}"
        )
    if reached := limit_reached(chain, used):
        return ChainDecision("limited", f"it has reached {reached}")
    last = chain_workers[-1] if chain_workers else None
    # The reason of a worker from before the chain was resumed no longer counts.
    if (
        last is not None
        and last.started_at > chain.began_at
        and last.reason not in HANDOVER_REASONS
    ):
        match last.status, last.reason:
            case "stopped", _:
                return ChainDecision("stopped", last.reason)
            case "clean", reason if reason == CHAIN_LIMIT:
                return ChainDecision("limited", "it has reached its limit of cost or time")
            case "clean", reason if reason.startswith(NO_MODEL):
                return ChainDecision("failed", reason)
            case "clean", _:
                return ChainDecision(
                    "limited", f"{pluralize(tasks_left, 'task')} left that wait for others"
                )
    if used.workers >= chain.max_chains:
        return ChainDecision(
            "limited",
            f"after {pluralize(used.workers, 'worker')} {pluralize(tasks_left, 'task')} left",
        )
    return ChainDecision()


def count_crashes(
    connection: sqlite3.Connection, chain: Chain, chain_workers: Sequence[Worker]
) -> int:
    """Count the workers that died last, in a row and without a finished step, since the chain began."""
    steps = task_runs.select_for_chain(connection, chain.chain_id)
    finished_a_step = {step.ordinal for step in steps if not step.open}
    crashes = 0
    for worker in reversed(chain_workers):
        if (
            worker.status != "crashed"
            or worker.ordinal in finished_a_step
            or worker.started_at < chain.began_at
        ):
            break
        crashes += 1
    return crashes


def limit_reached(chain: Chain, used: ChainUsage) -> str:
    """Return the limit of cost or time that the chain has reached, as text; empty for none."""
    if chain.max_cost is not None and used.cost_usd >= chain.max_cost:
        return f"its limit of ${chain.max_cost:g} (--max-cost)"
    if chain.max_cost is not None and used.unpriced_tokens:
        return (
            f"{used.unpriced_tokens:,} tokens without a known price, so that its limit of"
            f" ${chain.max_cost:g} (--max-cost) cannot be kept"
        )
    if chain.max_wall_s is not None and used.wall_s >= chain.max_wall_s:
        return f"its limit of {chain.max_wall_s:g} seconds (--max-wall)"
    return ""


def _scope_id(connection: sqlite3.Connection, options: ChainOptions) -> str:
    if options.scope_kind == "epic":
        return EPICS.load(connection, options.scope_id).epic_id
    if options.scope_kind == "story":
        return STORIES.load(connection, options.scope_id).story_id
    return ""


def _absolute_model(model: str | None) -> str | None:
    """Return the model's name so that it means the same in any directory."""
    kind, _, path = (model or "").partition(":")
    return f"script:{Path(path).absolute()}" if kind == "script" else model

"""A chain's beginning, what it has used up, and what follows when one of its sessions has ended.

Source: design of work, "Chains"; seed 004, solution 7.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cockpit.chains.handover import WorkerLimits
from cockpit.chains.unfinished import scope_of, unfinished_tasks
from cockpit.core.clock import parse_time
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.text import pluralize
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES
from cockpit.store.backlog.queue_scope import count_ready
from cockpit.store.chains import chains, task_runs, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.tasks.git import git, try_git
from cockpit.tasks.model_outage import NO_MODEL
from cockpit.tasks.worktree import ensure_chain_worktree, head_commit

MOST_CRASHES = 5
"""So many sessions that died one after another, without a step between them, fail the chain."""
_HANDS_OVER = ("pressure", "quota")


class ChainRefused(CockpitError):
    """A chain cannot begin or go on like this."""

    code = "usage"


@dataclass(frozen=True, slots=True)
class ChainOptions:
    """What a chain is to do: ``scope_kind`` is ``epic``, ``story`` or ``all``; ``batch`` is ``auto`` or
    a number; ``max_chains`` counts sessions, ``max_cost`` is in US dollars, ``max_wall_s`` in seconds."""

    scope_kind: str
    scope_id: str = ""
    headless: bool = False
    batch: str = "auto"
    approve: str = "ask"
    model: str | None = None
    runner: str | None = None
    max_chains: int = 10
    max_cost: float | None = None
    max_wall_s: float | None = None


@dataclass(frozen=True, slots=True)
class ChainUsage:
    """What a chain used up so far: sessions that handed over or ended in order, tokens, US dollars,
    and seconds that its sessions ran."""

    sessions: int
    tokens: int
    cost_usd: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class ChainDecision:
    """What comes after a session: another one (``status`` is empty), or the chain's end."""

    status: str = ""
    reason: str = ""

    @property
    def goes_on(self) -> bool:
        """Another session follows."""
        return not self.status


async def create_chain(
    store: Store,
    place: ProjectPaths,
    order: ChainOptions,
    *,
    within: Callable[[Tx, Chain], None] | None = None,
) -> Chain:
    """A new chain with its branch and working tree, owned by this process. ``within`` is called in the
    transaction that makes it; what that raises leaves no chain.

    Raises :class:`ChainRefused` for a scope without a task, ``NotFound`` for one that there is not,
    and ``WorktreeTrouble``.
    """
    base = await head_commit(place)
    branch = (await try_git(place.root, "symbolic-ref", "--quiet", "--short", "HEAD")).text.strip()
    listed = await git(
        place.home, "for-each-ref", "--format=%(refname:short)", "refs/heads/cockpit/"
    )
    taken = frozenset(listed.splitlines())

    def step(tx: Tx) -> Chain:
        made = chains.create(
            tx,
            scope_kind=order.scope_kind,
            scope_id=_scope_id(tx.connection, order),
            headless=order.headless,
            batch=order.batch,
            approve=order.approve,
            model=_lasting(order.model),
            runner=order.runner,
            max_chains=order.max_chains,
            max_cost=order.max_cost,
            max_wall_s=order.max_wall_s,
            base_branch=branch,
            base_commit=base,
            taken=taken,
        )
        if not chains.count_progress(tx.connection, made).total:
            raise ChainRefused(
                f"There is no task in {made.scope}; `cockpit tasks add` or `cockpit plan` makes some."
            )
        if within is not None:
            within(tx, made)
        return made

    made = await store.write(step)
    await ensure_chain_worktree(store, place, made.branch, chain_id=made.chain_id)
    return made


def resume_chain(tx: Tx, chain_id: str, replaced: Mapping[str, Any], *, sessions: int) -> Chain:
    """Let a chain run again, owned by this process. ``replaced`` are changed fields of
    :class:`ChainOptions`; a chain without workers left is given ``sessions`` more.

    Raises :class:`ChainRefused` where a limit of cost or time would end it at once, ``Stale`` while
    another process runs it, ``IllegalTransition`` for a complete one.
    """
    known = chains.acquire(tx, chain_id)
    limits = dict(replaced)
    if "model" in limits:
        limits["model"] = _lasting(limits["model"])
    used = chain_usage(tx.connection, known)
    if "max_chains" not in limits and used.sessions >= known.max_chains:
        limits["max_chains"] = used.sessions + sessions
    made = chains.resume(tx, chain_id, **limits)
    if reached := limit_reached(made, used):
        raise ChainRefused(f"{chain_id} has reached {reached}. Give it more with the same option.")
    return made


def chain_usage(connection: sqlite3.Connection, chain: Chain) -> ChainUsage:
    """What the chain used up, of sessions that died as well."""
    tokens, cost = connection.execute(
        "SELECT coalesce(sum(input_tokens+output_tokens),0), coalesce(sum(cost_usd),0.0)"
        " FROM sessions WHERE session_id IN (SELECT session_id FROM task_runs"
        " WHERE chain_id=? AND session_id IS NOT NULL)",
        (chain.chain_id,),
    ).fetchone()
    known = workers.select_for_chain(connection, chain.chain_id)
    wall = sum(
        (parse_time(one.ended_at or one.beat_at) - parse_time(one.started_at)).total_seconds()
        for one in known
    )
    return ChainUsage(
        sessions=sum(one.status in ("clean", "stopped") for one in known),
        tokens=int(tokens),
        cost_usd=float(cost),
        wall_s=wall,
    )


def worker_limits(chain: Chain, used: ChainUsage, *, tokens: int) -> WorkerLimits:
    """What the next session may use up: ``tokens`` of its own, and what is left of the chain's."""
    cost, wall = chain.max_cost, chain.max_wall_s
    return WorkerLimits(
        tokens=tokens,
        cost_usd=None if cost is None else max(0.0, cost - used.cost_usd),
        wall_s=None if wall is None else max(0.0, wall - used.wall_s),
    )


def decide_chain(connection: sqlite3.Connection, chain: Chain, now: str) -> ChainDecision:
    """What comes at ``now``, when no session of the chain runs."""
    known = workers.select_for_chain(connection, chain.chain_id)
    left = len(unfinished_tasks(connection, chain, now)) + count_ready(connection, scope_of(chain))
    crashes = _crashes(connection, chain, known)
    return decide_from(chain, known, left, chain_usage(connection, chain), crashes)


def decide_from(
    chain: Chain,
    known: Sequence[Worker],
    left: int,
    used: ChainUsage,
    crashes: int,
) -> ChainDecision:
    """As :func:`decide_chain`, from what is known.

    ``left`` counts the tasks that a session could take up or begin, ``crashes`` the sessions that
    died last, one after another, without a step between them.
    """
    if chain.status == "draining":
        return ChainDecision("stopped", "stopped at once" if chain.stop_now else "drained")
    if not left:
        return ChainDecision("completed")
    if crashes >= MOST_CRASHES:
        return ChainDecision(
            "failed", f"{crashes} sessions died one after another: {known[-1].reason}"
        )
    if reached := limit_reached(chain, used):
        return ChainDecision("limited", f"it has reached {reached}")
    last = known[-1] if known else None
    # What its last session found counts no more for a chain that was gone on with since.
    if last is not None and last.started_at > chain.began_at and last.reason not in _HANDS_OVER:
        match last.status, last.reason:
            case "stopped", _:
                return ChainDecision("stopped", last.reason)
            case "clean", "limit":
                return ChainDecision("limited", "it has reached its limit of cost or time")
            case "clean", why if why.startswith(NO_MODEL):
                return ChainDecision("failed", why)
            case "clean", _:
                return ChainDecision("limited", f"{pluralize(left, 'task')} left that others hold")
    if used.sessions >= chain.max_chains:
        return ChainDecision(
            "limited", f"after {pluralize(used.sessions, 'session')} {pluralize(left, 'task')} left"
        )
    return ChainDecision()


def _crashes(connection: sqlite3.Connection, chain: Chain, known: Sequence[Worker]) -> int:
    steps = task_runs.select_for_chain(connection, chain.chain_id)
    worked = {step.ordinal for step in steps if not step.open}
    counted = 0
    for one in reversed(known):
        if one.status != "crashed" or one.ordinal in worked or one.started_at < chain.began_at:
            break
        counted += 1
    return counted


def limit_reached(chain: Chain, used: ChainUsage) -> str:
    """The limit of cost or time that the chain has come to, in words; empty where there is none."""
    if chain.max_cost is not None and used.cost_usd >= chain.max_cost:
        return f"its limit of ${chain.max_cost:g} (--max-cost)"
    if chain.max_wall_s is not None and used.wall_s >= chain.max_wall_s:
        return f"its limit of {chain.max_wall_s:g} seconds (--max-wall)"
    return ""


def _scope_id(connection: sqlite3.Connection, order: ChainOptions) -> str:
    if order.scope_kind == "epic":
        return EPICS.load(connection, order.scope_id).epic_id
    if order.scope_kind == "story":
        return STORIES.load(connection, order.scope_id).story_id
    return ""


def _lasting(model: str | None) -> str | None:
    """The model's name as it means the same in any directory."""
    kind, _, path = (model or "").partition(":")
    return f"script:{Path(path).absolute()}" if kind == "script" else model

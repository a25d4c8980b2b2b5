"""Whether another worker follows, by what a chain has used and what is left to do.

See ``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from msgspec import Struct

from cockpit.chains.claim_batch import scope_of, unfinished_tasks
from cockpit.chains.handover import WorkerLimits
from cockpit.core.clock import parse_time
from cockpit.core.text import pluralize
from cockpit.store.backlog.queue_scope import count_ready
from cockpit.store.chains import chains, task_runs, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.end_reasons import CHAIN_LIMIT, HANDOVER_REASONS
from cockpit.store.chains.workers import Worker
from cockpit.tasks.outage import LIMIT, is_outage, is_passing

MAX_CRASHES = 5
"""So many workers that died in a row, without a finished step between them, fail the chain."""


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
    return ChainUsage(
        workers=sum(worker.status in ("clean", "stopped") for worker in chain_workers),
        tokens=int(tokens),
        cost_usd=float(cost),
        wall_s=sum(map(worker_seconds, chain_workers)),
        unpriced_tokens=int(unpriced),
    )


def worker_seconds(worker: Worker) -> float:
    """Return how long the worker ran, or has run so far."""
    ended = parse_time(worker.ended_at or worker.beat_at)
    return (ended - parse_time(worker.started_at)).total_seconds()


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
            case "clean", reason if is_outage(reason):
                return ChainDecision(_after_outage(reason), reason)
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


def _after_outage(reason: str) -> str:
    if reason.startswith(f"{LIMIT}: "):
        return "limited"
    return "stopped" if is_passing(reason) else "failed"


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

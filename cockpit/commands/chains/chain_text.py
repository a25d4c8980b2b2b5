"""A chain as a JSON document or as text."""

from __future__ import annotations

import sqlite3

from cockpit.chains.decide_next_worker import chain_usage
from cockpit.chains.progress_lines import describe_status
from cockpit.chains.start_after_agent import session_before
from cockpit.core.text import pluralize
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.chains import chains, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.end_reasons import END_REASONS
from cockpit.store.chains.workers import Worker
from cockpit.tasks.outage import LIMIT


def chain_text(connection: sqlite3.Connection, chain: Chain) -> str:
    """Return the chain as lines of text, with one line for each worker."""
    usage, progress = chain_usage(connection, chain), chains.count_progress(connection, chain)
    is_limited = chain.reason.startswith(f"{LIMIT}: ")
    reason = f" ({chain.reason})" if chain.reason and not is_limited else ""
    unwatched = chain.status in chains.OPEN and not chains.is_watched(chain)
    status = describe_status(chain.status, chain.reason).removeprefix("is ")
    lines = [
        f"{chain.chain_id} {status}{reason}{'; no process supervises it' if unwatched else ''}",
        f"  scope      {chain.scope}: {progress.done}/{pluralize(progress.total, 'task')} done,"
        f" {progress.blocked} blocked, {progress.under_way} in progress, {progress.ready} ready",
        f"  branch     {chain.branch}, from {chain.base_branch or 'no branch'} at"
        f" {chain.base_commit[:10]}",
        f"  options    -n {chain.batch} --approve {chain.approve}"
        f" --model {chain.model or 'the configured one'}",
        f"  workers    {usage.workers} of {chain.max_chains}",
        f"  used       {usage.tokens:,} tokens, ${usage.cost_usd:.2f}{_limit(chain.max_cost, '$')},"
        f" {usage.wall_s:.0f} s{_limit(chain.max_wall_s, '')}",
    ]
    if after := session_before(connection, chain):
        reason = f" ({after.reason})" if after.reason else ""
        lines.append(
            f"  follows    {after.agent}'s session {after.agent_session}{reason}: on_session_end"
        )
    if chain.report_path:
        lines.append(f"  report     {chain.report_path}")
    lines += [
        _worker_line(worker) for worker in workers.select_for_chain(connection, chain.chain_id)
    ]
    return "\n".join(lines)


def _worker_line(worker: Worker) -> str:
    sign = state_sign("worker", worker.status).sign
    cause_of_death = workers.explain_death(worker)
    reason = END_REASONS.get(worker.reason, worker.reason)
    status = f"{worker.status}, {reason}" if reason else worker.status
    if cause_of_death:
        status = f"dead: {cause_of_death}"
    share = 100 * worker.tokens // max(1, worker.token_limit)
    return (
        f"  {sign} s{worker.ordinal} {status} · process {worker.pid} ·"
        f" {worker.batches} {'batch' if worker.batches == 1 else 'batches'} ·"
        f" {worker.tokens:,} of {worker.token_limit:,} tokens ({share} %),"
        f" {round(100 * worker.dropped_share)} % of facts dropped · ${worker.cost_usd:.2f}"
    )


def _limit(limit: float | None, unit: str) -> str:
    return "" if limit is None else f" of {unit}{limit:g}"

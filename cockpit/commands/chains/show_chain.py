"""A chain as it is shown: one JSON document, or a page for a person."""

from __future__ import annotations

import sqlite3
from typing import Any

from cockpit.chains.chain_after_session import session_before
from cockpit.chains.chain_lifecycle import chain_usage
from cockpit.core.text import pluralize
from cockpit.store.chains import chains, worker_metrics, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker


def document(connection: sqlite3.Connection, chain: Chain) -> dict[str, Any]:
    """The chain with its progress, what it spent, and its ``sessions``; each with its measures."""
    used = chain_usage(connection, chain)
    measures = {
        one.ordinal: one for one in worker_metrics.select_for_chain(connection, chain.chain_id)
    }
    sessions = []
    for one in workers.select_for_chain(connection, chain.chain_id):
        known = measures.get(one.ordinal)
        sessions.append(
            {
                **one.body(),
                "tasks_done": known.tasks_done if known else 0,
                "tasks_blocked": known.tasks_blocked if known else 0,
                "interrupted": known.interrupted if known else 0,
                "review_failures": known.review_failures if known else 0,
            }
        )
    return {
        **chain.body(),
        "watched": chains.is_watched(chain),
        "progress": chains.count_progress(connection, chain).body(),
        "tokens": used.tokens,
        "cost_usd": used.cost_usd,
        "wall_s": round(used.wall_s, 3),
        "sessions": sessions,
    }


def page(connection: sqlite3.Connection, chain: Chain) -> str:
    """The chain in lines for a person."""
    used, known = chain_usage(connection, chain), chains.count_progress(connection, chain)
    why = f" ({chain.reason})" if chain.reason else ""
    watched = chains.is_watched(chain)
    alone = "" if watched or chain.status not in chains.OPEN else "; nobody watches over it"
    lines = [
        f"{chain.chain_id} {chain.status}{why}{alone}",
        f"  scope      {chain.scope}: {known.done}/{pluralize(known.total, 'task')} done,"
        f" {known.blocked} blocked, {known.under_way} under way, {known.ready} ready",
        f"  branch     {chain.branch}, from {chain.base_branch or 'no branch'} at"
        f" {chain.base_commit[:10]}",
        f"  runs with  -n {chain.batch} --approve {chain.approve}"
        f" --model {chain.model or 'the configured one'}",
        f"  sessions   {used.sessions} of {chain.max_chains}",
        f"  spent      {used.tokens:,} tokens, ${used.cost_usd:.2f}{_of(chain.max_cost, '$')},"
        f" {used.wall_s:.0f} s{_of(chain.max_wall_s, '')}",
    ]
    if after := session_before(connection, chain):
        why = f" ({after.reason})" if after.reason else ""
        lines.append(f"  follows    {after.agent}'s session {after.session}{why}: on_session_end")
    if chain.report_path:
        lines.append(f"  report     {chain.report_path}")
    lines += [_session(one) for one in workers.select_for_chain(connection, chain.chain_id)]
    return "\n".join(lines)


def _session(one: Worker) -> str:
    mark = {"running": "▶", "clean": "✔", "crashed": "✘", "stopped": "■"}[one.status]
    why = workers.explain_death(one)
    reason = workers.END_REASONS.get(one.reason, one.reason)
    ended = f"{one.status}, {reason}" if reason else one.status
    status = f"dead: {why}" if why else ended
    share = 100 * one.tokens // max(1, one.token_limit)
    return (
        f"  {mark} s{one.ordinal} {status} · process {one.pid} ·"
        f" {one.batches} {'batch' if one.batches == 1 else 'batches'} ·"
        f" {one.tokens:,} of {one.token_limit:,} tokens ({share} %),"
        f" {round(100 * one.dropped_share)} % left out · ${one.cost_usd:.2f}"
    )


def _of(limit: float | None, unit: str) -> str:
    return "" if limit is None else f" of {unit}{limit:g}"

"""What waits, runs and was used in a project, read from its tables for the metrics.

See ``docs/reference/kernel.md``, metrics.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_KINDS = ("context", "action", "profile", "skill", "permission")
_SESSIONS = ("running", "waiting", "completed", "failed", "stopped")
_TASKS = ("todo", "in_progress", "review", "done", "blocked", "archived")
_CHAINS = ("running", "draining", "completed", "stopped", "failed", "limited")
_TOKENS = ("input", "output", "cached")


class Totals(msgspec.Struct, frozen=True):
    """Counts by label, as the tables have them now."""

    pending: Mapping[str, int] = {}
    """Pending proposals by kind."""
    sessions: Mapping[str, int] = {}
    tasks: Mapping[str, int] = {}
    chains: Mapping[str, int] = {}
    tokens: Mapping[str, int] = {}
    """Tokens of all sessions by ``input``, ``output`` and ``cached``."""
    cost_usd: float = 0.0
    """Cost of all sessions whose model has a known price, in US dollars."""


def read_totals(connection: sqlite3.Connection) -> Totals:
    """Read the totals; reads each session once, and of tasks an index."""

    def count(sql: str) -> dict[str, int]:
        return dict(connection.execute(sql).fetchall())

    used = connection.execute(
        "SELECT total(input_tokens), total(output_tokens), total(cached_tokens), total(cost_usd)"
        " FROM sessions"
    ).fetchone()
    return Totals(
        count("SELECT kind, count(*) FROM proposals WHERE status='pending' GROUP BY kind"),
        count("SELECT status, count(*) FROM sessions GROUP BY status"),
        count("SELECT status, count(*) FROM tasks GROUP BY status"),
        count("SELECT status, count(*) FROM chains GROUP BY status"),
        dict(zip(_TOKENS, map(int, used), strict=False)),
        used[3],
    )


def collect_totals(totals: Totals) -> Iterator[Metric]:
    """Yield the totals as Prometheus' client reads them."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    gauges = (
        ("cockpit_proposals_pending", "Proposals that wait.", "kind", _KINDS, totals.pending),
        ("cockpit_sessions", "Sessions by status.", "status", _SESSIONS, totals.sessions),
        ("cockpit_tasks", "Tasks by status.", "status", _TASKS, totals.tasks),
        ("cockpit_chains", "Chains by status.", "status", _CHAINS, totals.chains),
    )
    for name, text, label, values, counts in gauges:
        gauge = GaugeMetricFamily(name, text, labels=[label])
        for value in values:
            gauge.add_metric([value], counts.get(value, 0))
        yield gauge
    tokens = CounterMetricFamily(
        "cockpit_tokens_total", "Tokens of all sessions.", labels=["direction"]
    )
    for value in _TOKENS:
        tokens.add_metric([value], totals.tokens.get(value, 0))
    yield tokens
    yield CounterMetricFamily(
        "cockpit_cost_usd_total", "Cost of all sessions in US dollars.", totals.cost_usd
    )

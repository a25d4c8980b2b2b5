"""Prometheus metrics counted from the journal.

They count the journal from its first row, so every process of the project exports the same numbers. See
``docs/reference/measures.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from cockpit.store.journal import journal
from cockpit.store.journal.details.waves import FeedbackRecorded, ObservationJobs, PacketCompiled
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row

BATCH = 5_000
_PROFILE = "orientation.profile."
_ROLLED_BACK = (f"{_PROFILE}rolled_back", f"{_PROFILE}reverted")
_DECIDED = ("proposed", "approved", "rejected", "expired")


class Metrics:
    """The eight metrics; rows are counted in the journal's order."""

    def __init__(self) -> None:
        # Its import takes 117 ms, which only a request for metrics should cost.
        from prometheus_client import (
            CollectorRegistry,
            Counter,
            Gauge,
            disable_created_metrics,
        )

        # The time of counting means nothing for the journal.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it untyped
        self._registry = CollectorRegistry(auto_describe=True)
        keep: dict[str, Any] = {"registry": self._registry}
        self.tokens_used = Gauge(
            "orientation_packet_tokens_used", "Tokens of the packet compiled last.", **keep
        )
        self.overflow = Counter(
            "orientation_budget_overflow_total",
            "Waves whose pinned facts passed the budget.",
            **keep,
        )
        self.drops = Counter(
            "orientation_fact_drop_total", "Facts left out of packets.", ["reason"], **keep
        )
        self.jobs = Counter(
            "observation_jobs_total", "Observation jobs.", ["source", "status"], **keep
        )
        self.latency = Gauge(
            "observation_job_latency_ms",
            "Latency of the jobs fanned out last.",
            ["quantile"],
            **keep,
        )
        self.proposals = Counter(
            "profile_proposal_total", "Profile change proposals.", ["status"], **keep
        )
        self.rollbacks = Counter(
            "profile_rollback_total", "Adaptations that went back to their base.", **keep
        )
        self.regret = Counter(
            "decision_regret_total", "Decisions that were later taken back.", **keep
        )
        self._after = 0
        self._takers: Mapping[str, Callable[[Row], None]] = {
            Action.PACKET_COMPILED: self._compiled,
            Action.WAVE_FAILED: self._failed,
            Action.OBSERVATION_JOBS: self._observed,
            Action.FEEDBACK_RECORDED: self._judged,
        }

    def catch_up(self, connection: sqlite3.Connection) -> Metrics:
        """Count the rows that were added since the last call."""
        while rows := journal.rows(connection, after=self._after, limit=BATCH):
            for row in rows:
                self.take(row)
                self._after = row.seq
        return self

    def take(self, row: Row) -> None:
        """Count one row."""
        taker = self._takers.get(row.action)
        if taker is not None:
            taker(row)
        elif row.action.startswith(_PROFILE):
            status = row.action.removeprefix(_PROFILE)
            if status in _DECIDED:
                self.proposals.labels(status).inc()
            elif row.action in _ROLLED_BACK:
                self.rollbacks.inc()

    def exposition(self) -> str:
        """Return the metrics in Prometheus' text format."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry).decode("utf-8")

    def _compiled(self, row: Row) -> None:
        packet = row.read(PacketCompiled)
        self.tokens_used.set(packet.token_used)
        for reason, count in packet.drops.items():
            self.drops.labels(reason).inc(count)

    def _failed(self, row: Row) -> None:
        if row.error_code == "pinned_over_budget":
            self.overflow.inc()

    def _observed(self, row: Row) -> None:
        jobs = row.read(ObservationJobs)
        for source, statuses in jobs.sources.items():
            for status, count in statuses.items():
                self.jobs.labels(source, status).inc(count)
        for quantile, value in jobs.latency_ms.items():
            self.latency.labels(quantile).set(value)

    def _judged(self, row: Row) -> None:
        if row.read(FeedbackRecorded).regret:
            self.regret.inc()


def measured(connection: sqlite3.Connection) -> Metrics:
    """Count the whole journal."""
    return Metrics().catch_up(connection)

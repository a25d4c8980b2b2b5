"""Prometheus metrics counted from the journal.

They count the journal from its first row, so every process of the project exports the same numbers; the
counts of pruned rows are in the journal's anchor. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.store.context.observation_jobs import FACT_CAP, LATENCY_BUCKETS_MS, MORE
from cockpit.store.context.packets import REASONS
from cockpit.store.journal import anchor, journal
from cockpit.store.journal.details.profiles import ProfileChange, ProfileEnded
from cockpit.store.journal.details.waves import FeedbackRecorded, ObservationJobs, PacketCompiled
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row

if TYPE_CHECKING:
    from prometheus_client.core import Metric

BATCH = 5_000
_PROFILE = "orientation.profile."
_DECIDED = ("approved", "rejected", "expired")


class Counts(msgspec.Struct):
    """Everything counted up to row ``seq``."""

    seq: int = 0
    packet_tokens_used: int = 0
    overflows: int = 0
    drops: dict[str, int] = {}
    jobs: dict[str, dict[str, int]] = {}
    latency_buckets: dict[str, int] = {}
    """Jobs by the upper bound of their latency in milliseconds; not cumulative."""
    latency_sum_ms: int = 0
    proposals: dict[str, int] = {}
    undecided: set[str] = set()
    """Changes that were proposed and not decided."""
    started: int = 0
    """Temporary changes that began to apply."""
    ended: dict[str, int] = {}
    """Temporary changes that ended, by how."""
    rollbacks: int = 0
    regrets: int = 0


class Metrics:
    """The metrics; rows are counted in the journal's order."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._takers: Mapping[str, Callable[[Row], None]] = {
            Action.PACKET_COMPILED: self._compiled,
            Action.WAVE_FAILED: self._failed,
            Action.OBSERVATION_JOBS: self._observed,
            Action.FEEDBACK_RECORDED: self._judged,
            Action.PROFILE_PROPOSED: self._proposed,
            Action.PROFILE_APPLIED: self._applied,
            Action.PROFILE_REVERTED: self._ended,
            Action.PROFILE_PROMOTED: self._ended,
            Action.PROFILE_ROLLED_BACK: self._ended,
            **{f"{_PROFILE}{status}": self._decided for status in _DECIDED},
        }

    def catch_up(self, connection: sqlite3.Connection, *, until: int | None = None) -> Metrics:
        """Count the rows that were added since the last call, up to the row ``until`` (None: all)."""
        pruned = anchor.find(connection)
        if pruned is not None and self.counts.seq < pruned.seq:
            self.counts = msgspec.json.decode(pruned.metrics_json, type=Counts)
            self.counts.seq = pruned.seq
        while limit := BATCH if until is None else min(BATCH, until - self.counts.seq):
            rows = journal.rows(connection, after=self.counts.seq, limit=limit)
            if not rows:
                break
            for row in rows:
                if until is not None and row.seq > until:
                    return self
                self.take(row)
        return self

    def take(self, row: Row) -> None:
        """Count one row."""
        taker = self._takers.get(row.action)
        if taker is not None:
            taker(row)
        self.counts.seq = row.seq

    def exposition(self) -> str:
        """Return the metrics in Prometheus' text format."""
        # Its import takes 117 ms, which only a request for metrics should cost.
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry).decode("utf-8")

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as Prometheus' client reads them."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        counts = self.counts

        def counter(name: str, text: str, values: Mapping[str, int], label: str) -> Metric:
            family = CounterMetricFamily(name, text, labels=[label])
            for value, count in values.items():
                family.add_metric([value], count)
            return family

        yield GaugeMetricFamily(
            "orientation_packet_tokens_used",
            "Tokens of the packet compiled last.",
            counts.packet_tokens_used,
        )
        yield CounterMetricFamily(
            "orientation_budget_overflow_total",
            "Waves whose pinned facts passed the budget.",
            counts.overflows,
        )
        drops = dict.fromkeys((*REASONS, FACT_CAP), 0) | counts.drops
        yield counter(
            "orientation_fact_drop_total", "Facts left out, by reason.", drops, label="reason"
        )
        jobs = CounterMetricFamily(
            "observation_jobs_total", "Observation jobs.", labels=["source", "status"]
        )
        for source, statuses in counts.jobs.items():
            for status, count in statuses.items():
                jobs.add_metric([source, status], count)
        yield jobs
        latency = HistogramMetricFamily(
            "observation_job_latency_ms", "Latency of observation jobs in milliseconds."
        )
        latency.add_metric([], _cumulative(counts.latency_buckets), counts.latency_sum_ms)
        yield latency
        proposals = {"proposed": 0, **dict.fromkeys(_DECIDED, 0)} | counts.proposals
        yield counter(
            "profile_proposal_total",
            "Profile changes: proposed is approved, rejected, expired and those that wait.",
            proposals,
            label="status",
        )
        yield CounterMetricFamily(
            "profile_rollback_total",
            "Profiles that went back to an earlier version.",
            counts.rollbacks,
        )
        yield CounterMetricFamily(
            "profile_temporary_change_started_total",
            "Temporary profile changes that began to apply.",
            counts.started,
        )
        ended = {"reverted": 0, "promoted": 0, "rolled_back": 0} | counts.ended
        yield counter(
            "profile_temporary_change_ended_total",
            "Temporary profile changes that ended, by how.",
            ended,
            label="how",
        )
        yield CounterMetricFamily(
            "decision_regret_total", "Decisions that were later taken back.", counts.regrets
        )

    def _compiled(self, row: Row) -> None:
        packet = row.read(PacketCompiled)
        self.counts.packet_tokens_used = packet.token_used
        for reason, count in packet.drops.items():
            _add(self.counts.drops, reason, count)

    def _failed(self, row: Row) -> None:
        if row.error_code == "pinned_over_budget":
            self.counts.overflows += 1

    def _observed(self, row: Row) -> None:
        jobs = row.read(ObservationJobs)
        for source, statuses in jobs.sources.items():
            for status, count in statuses.items():
                _add(self.counts.jobs.setdefault(source, {}), status, count)
        if dropped := jobs.refused.get(FACT_CAP, 0):
            _add(self.counts.drops, FACT_CAP, dropped)
        # Rows of earlier versions of cockpit have percentiles only.
        if isinstance(jobs.latency_buckets, Mapping):
            for bound, count in jobs.latency_buckets.items():
                _add(self.counts.latency_buckets, bound, count)
        if isinstance(jobs.latency_sum_ms, int):
            self.counts.latency_sum_ms += jobs.latency_sum_ms

    def _judged(self, row: Row) -> None:
        if row.read(FeedbackRecorded).regret:
            self.counts.regrets += 1

    def _proposed(self, row: Row) -> None:
        _add(self.counts.proposals, "proposed", 1)
        self.counts.undecided.add(row.read(ProfileChange).proposal_id)

    def _decided(self, row: Row) -> None:
        proposal_id = row.read(ProfileChange).proposal_id
        if proposal_id not in self.counts.undecided:
            # Earlier versions of cockpit did not journal the proposal of a change that the guard refused.
            _add(self.counts.proposals, "proposed", 1)
        self.counts.undecided.discard(proposal_id)
        _add(self.counts.proposals, row.action.removeprefix(_PROFILE), 1)

    def _applied(self, row: Row) -> None:
        if row.read(ProfileChange).effective_waves:
            self.counts.started += 1

    def _ended(self, row: Row) -> None:
        how = row.action.removeprefix(_PROFILE)
        if row.read(ProfileEnded).proposal_id:
            _add(self.counts.ended, how, 1)
        if how != "promoted":
            self.counts.rollbacks += 1


def measured(connection: sqlite3.Connection) -> Metrics:
    """Count the whole journal."""
    return Metrics().catch_up(connection)


def fold_counts(connection: sqlite3.Connection, until: int) -> str:
    """Return the counts up to the row ``until`` as JSON, for the journal's anchor."""
    return msgspec.json.encode(Metrics().catch_up(connection, until=until).counts).decode()


def _add(counts: dict[str, int], key: str, count: Any) -> None:
    if isinstance(count, int):
        counts[key] = counts.get(key, 0) + count


def _cumulative(buckets: Mapping[str, int]) -> list[tuple[str, float]]:
    total = 0
    bounds = []
    for bound in (*map(str, LATENCY_BUCKETS_MS), MORE):
        total += buckets.get(bound, 0)
        bounds.append((bound, float(total)))
    return bounds

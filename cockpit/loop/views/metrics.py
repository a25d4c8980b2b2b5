"""Prometheus metrics: counted from the journal, and totals read from the tables.

Counts begin at the journal's first row, so every process of the project exports the same numbers; the
counts of pruned rows are in the journal's anchor. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from cockpit.core.read_record import decode_json
from cockpit.loop.views.project_totals import Totals, collect_totals, read_totals
from cockpit.observe.scope_items import KINDS
from cockpit.store.context.observation_jobs import FACT_CAP, LATENCY_BUCKETS_MS, MORE
from cockpit.store.context.packets import REASONS
from cockpit.store.journal import journal, prune_anchor
from cockpit.store.journal.details.detail import decode_detail
from cockpit.store.journal.details.estimates import EstimateLearned, EstimateMade, Expected
from cockpit.store.journal.details.profiles import ProfileChange, ProfileEnded
from cockpit.store.journal.details.proposals import ProposalDecided
from cockpit.store.journal.details.waves import FeedbackRecorded, ObservationJobs, PacketCompiled
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row

if TYPE_CHECKING:
    from prometheus_client.core import Metric

BATCH = 50_000
"""Rows of the journal whose counted ones are read at once."""
OTHER = "other"
"""The label of what this version has no name for: a journal must not decide how many series there are."""
_REASONS = frozenset((*REASONS, FACT_CAP))
_JOB_STATUSES = frozenset(("planned", "done", "failed", "timed_out", "refused"))
_BOUNDS = frozenset((*(str(bound) for bound in LATENCY_BUCKETS_MS), MORE))
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
    started: int = 0
    """Temporary changes that began to apply."""
    ended: dict[str, int] = {}
    """Temporary changes that ended, by how."""
    rollbacks: int = 0
    regrets: int = 0
    estimates: dict[str, int] = {}
    """Estimates: ``made``, ``revised``, and ``within`` or ``outside`` their range of waves."""


class Counted(NamedTuple):
    """A row of the journal that is counted."""

    seq: int
    action: str
    error_code: str
    detail_json: str


class Metrics:
    """The metrics; rows are counted in the journal's order."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.totals = Totals()
        self._takers: Mapping[str, Callable[[Counted | Row], None]] = {
            Action.PACKET_COMPILED: self._compiled,
            Action.WAVE_FAILED: self._failed,
            Action.OBSERVATION_JOBS: self._observed,
            Action.FEEDBACK_RECORDED: self._judged,
            Action.ESTIMATE_MADE: self._estimated,
            Action.ESTIMATE_LEARNED: self._learned,
            Action.PROFILE_PROPOSED: self._decided,
            Action.PROFILE_APPLIED: self._applied,
            Action.PROFILE_ENDED: self._ended,
            Action.PROFILE_APPROVED: self._decided,
            Action.PROFILE_REJECTED: self._decided,
            Action.PROPOSAL_DECIDED: self._expired,
        }

    def catch_up(self, connection: sqlite3.Connection, *, until: int | None = None) -> Metrics:
        """Count the rows that were added since the last call, up to the row ``until`` (None: all)."""
        pruned = prune_anchor.find(connection)
        if pruned is not None and self.counts.seq < pruned.seq:
            self.counts = decode_json(pruned.metrics_json, Counts)
            self.counts.seq = pruned.seq
        end = journal.last_seq(connection) if until is None else until
        while self.counts.seq < end:
            last = min(self.counts.seq + BATCH, end)
            # Through the index of actions: most rows are not counted, and not read.
            for row in connection.execute(
                "SELECT seq, action, error_code, detail_json FROM journal WHERE action IN"  # noqa: S608 - placeholders
                f" ({','.join('?' * len(self._takers))}) AND seq>? AND seq<=? ORDER BY seq",
                (*self._takers, self.counts.seq, last),
            ):
                self.take(Counted(*row))
            self.counts.seq = last
        return self

    def read(self, connection: sqlite3.Connection) -> Metrics:
        """Count what was added to the journal since the last call, and read the totals of now."""
        self.totals = read_totals(connection)
        return self.catch_up(connection)

    def take(self, row: Counted | Row) -> None:
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
        estimates = dict.fromkeys(("made", "revised", "within", "outside"), 0) | counts.estimates
        yield counter(
            "planner_estimates_total",
            "Estimates made and revised, and those within and outside what was taken.",
            estimates,
            label="event",
        )
        yield CounterMetricFamily(
            "decision_regret_total", "Decisions that were later taken back.", counts.regrets
        )
        yield from collect_totals(self.totals)

    def _compiled(self, row: Counted | Row) -> None:
        packet = decode_detail(PacketCompiled, row.detail_json)
        self.counts.packet_tokens_used = packet.token_used
        for reason, count in packet.drops.items():
            _add(self.counts.drops, reason if reason in _REASONS else OTHER, count)

    def _failed(self, row: Counted | Row) -> None:
        if row.error_code == "pinned_over_budget":
            self.counts.overflows += 1

    def _observed(self, row: Counted | Row) -> None:
        jobs = decode_detail(ObservationJobs, row.detail_json)
        for source, statuses in jobs.sources.items():
            named = self.counts.jobs.setdefault(source if source in KINDS else OTHER, {})
            for status, count in statuses.items():
                _add(named, status if status in _JOB_STATUSES else OTHER, count)
        if dropped := jobs.refused.get(FACT_CAP, 0):
            _add(self.counts.drops, FACT_CAP, dropped)
        for bound in _BOUNDS & jobs.latency_buckets.keys():
            _add(self.counts.latency_buckets, bound, jobs.latency_buckets[bound])
        self.counts.latency_sum_ms += jobs.latency_sum_ms

    def _judged(self, row: Counted | Row) -> None:
        if decode_detail(FeedbackRecorded, row.detail_json).regret:
            self.counts.regrets += 1

    def _estimated(self, row: Counted | Row) -> None:
        why = decode_detail(EstimateMade, row.detail_json).why
        _add(self.counts.estimates, "revised" if why else "made", 1)

    def _learned(self, row: Counted | Row) -> None:
        learned = decode_detail(EstimateLearned, row.detail_json)
        if isinstance(learned.expected, Expected):
            waves = learned.expected.waves
            is_within = waves.low <= learned.waves <= waves.high
            _add(self.counts.estimates, "within" if is_within else "outside", 1)

    def _decided(self, row: Counted | Row) -> None:
        _add(self.counts.proposals, row.action.removeprefix(_PROFILE), 1)

    def _expired(self, row: Counted | Row) -> None:
        decided = decode_detail(ProposalDecided, row.detail_json)
        if (decided.kind, decided.status) == ("profile", "expired"):
            _add(self.counts.proposals, "expired", 1)

    def _applied(self, row: Counted | Row) -> None:
        if decode_detail(ProfileChange, row.detail_json).effective_waves:
            self.counts.started += 1

    def _ended(self, row: Counted | Row) -> None:
        ended = decode_detail(ProfileEnded, row.detail_json)
        if ended.proposal_id:
            _add(self.counts.ended, ended.how, 1)
        if ended.how != "promoted":
            self.counts.rollbacks += 1


def measured(connection: sqlite3.Connection) -> Metrics:
    """Count the whole journal, and read the totals."""
    return Metrics().read(connection)


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

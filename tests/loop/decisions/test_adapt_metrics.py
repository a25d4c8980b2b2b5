"""The metrics of profile changes, jobs and dropped facts add up, however the journal is read."""

from __future__ import annotations

import json
from typing import Any

from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from cockpit.access.principals import agent
from cockpit.core.canonical_json import canonical_json
from cockpit.loop.views import metrics as views
from cockpit.loop.views.metrics import Counted, Metrics, measured
from cockpit.store.context.observation_jobs import LATENCY_BUCKETS_MS, count_latencies
from cockpit.store.journal import checkpoints
from cockpit.store.journal.details.detail import detail_body
from cockpit.store.journal.details.waves import ObservationJobs
from cockpit.store.journal.event_types import Action


def exposed(metrics: Metrics) -> dict[tuple[str, str], float]:
    """The exposition by name and the value of its only label."""
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in text_string_to_metric_families(metrics.exposition())
        for sample in family.samples
    }


def counted(desk: Any) -> dict[tuple[str, str], float]:
    return exposed(desk.store.read_now(measured))


def test_every_change_that_was_proposed_is_counted_once_and_so_is_its_end(at_desk):
    desk = at_desk()
    held = desk.propose(desk.payload(effective_waves=1))
    desk.decide(held.proposal_id)
    desk.begin()
    desk.begin()
    again = desk.propose(desk.payload())
    desk.decide(again.proposal_id)
    desk.roll_back()
    desk.roll_back(to=2)
    other = [{"rule_id": "search", "priority_weight": 1.5}]
    desk.decide(desk.propose(desk.payload(rules=other, reason="no")).proposal_id, "rejected")
    desk.decide(desk.propose(desk.payload(rules=other, reason="talk")).proposal_id, "discussed")
    desk.propose("{", agent("s-1"))
    desk.propose(desk.payload(effective_waves=5_000))
    desk.propose(desk.payload(rules=other, reason="waits"))
    found = counted(desk)
    proposals = {
        status: found[("profile_proposal_total", status)]
        for status in ("proposed", "approved", "rejected", "expired")
    }
    assert proposals == {"proposed": 7, "approved": 2, "rejected": 4, "expired": 0}
    assert len(measured_undecided(desk)) == 1
    ended = {
        how: found[("profile_temporary_change_ended_total", how)]
        for how in ("reverted", "promoted", "rolled_back")
    }
    assert ended == {"reverted": 1, "promoted": 0, "rolled_back": 1}
    assert found[("profile_temporary_change_started_total", "")] == sum(ended.values())
    assert found[("profile_rollback_total", "")] == 3


def measured_undecided(desk: Any) -> set[str]:
    return desk.store.read_now(measured).counts.undecided


def test_what_the_guard_refused_is_journalled_with_what_was_sent(at_desk):
    desk = at_desk()
    desk.propose(desk.payload(effective_waves=5_000, reason="for ever"))
    desk.propose('{"bands": 1, "reason": "half"}')
    desk.propose("not JSON")
    desk.propose("x" * 10_000)
    rows = desk.store.read_now(
        lambda c: c.execute(
            "SELECT detail_json FROM journal WHERE action='orientation.profile.proposed'"
        ).fetchall()
    )
    sent = [json.loads(detail)["payload"] for (detail,) in rows]
    assert sent[0]["reason"] == "for ever"
    assert sent[1] == {"bands": 1, "reason": "half"}
    assert sent[2] == {"text": "not JSON", "characters": 8}
    assert (len(sent[3]["text"]), sent[3]["characters"]) == (4_000, 10_000)


def test_older_journals_lack_the_proposal_of_a_refused_change(at_desk):
    desk = at_desk()
    desk.propose(desk.payload(effective_waves=5_000))
    metrics = Metrics()
    for row in desk.store.read_now(lambda c: rows_without_proposals(c)):
        metrics.take(row)
    assert exposed(metrics)[("profile_proposal_total", "proposed")] == 1


def rows_without_proposals(connection: Any) -> list[Any]:
    from cockpit.store.journal import journal

    rows = journal.rows(connection)
    return [row for row in rows if row.action != "orientation.profile.proposed"]


LATENCIES = st.lists(st.integers(0, 100_000), max_size=60)


@given(st.lists(LATENCIES, max_size=4), st.integers(0, 9))
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_histogram_has_every_job_and_the_drops_every_fact(waves, capped):
    metrics = Metrics()
    for took in waves:
        body = canonical_json(detail_body(jobs(sorted(took), capped)))
        metrics.take(Counted(1, str(Action.OBSERVATION_JOBS), "", body))
    found = exposed(metrics)
    every = [latency for took in waves for latency in took]
    assert found[("observation_job_latency_ms_count", "")] == len(every)
    assert found[("observation_job_latency_ms_sum", "")] == sum(every)
    for bound in LATENCY_BUCKETS_MS:
        within = sum(latency <= bound for latency in every)
        assert found[("observation_job_latency_ms_bucket", str(bound))] == within
    assert found[("orientation_fact_drop_total", "fact_cap")] == capped * len(waves)


def jobs(took: list[int], capped: int) -> ObservationJobs:
    return ObservationJobs(
        planned=len(took),
        done=len(took),
        failed=0,
        timed_out=0,
        refused={"fact_cap": capped} if capped else {},
        sources={"file": {"done": len(took)}},
        latency_ms={},
        latency_buckets=count_latencies(took),
        latency_sum_ms=sum(took),
    )


def test_stored_counts_are_gone_on_from_and_count_every_row_once(at_desk, monkeypatch):
    monkeypatch.setattr(views, "CHECKPOINT_EVERY", 1)
    desk = at_desk()
    desk.propose(desk.payload(effective_waves=5_000))
    first = desk.store.read_now(measured)
    views.store_counts(desk.store, first)
    assert desk.store.read_now(lambda c: checkpoints.find(c, "metrics")) is not None
    desk.propose(desk.payload(effective_waves=5_001))
    assert counted(desk)[("profile_proposal_total", "proposed")] == 2
    # One that was counted already goes on from its own counts.
    assert exposed(desk.store.read_now(first.catch_up)) == counted(desk)


def test_counts_up_to_a_row_before_the_stored_ones_start_from_the_first(at_desk, monkeypatch):
    monkeypatch.setattr(views, "CHECKPOINT_EVERY", 1)
    desk = at_desk()
    desk.propose(desk.payload(effective_waves=5_000))
    before = desk.store.read_now(lambda c: views.fold_counts(c, 2))
    views.store_counts(desk.store, desk.store.read_now(measured))
    assert desk.store.read_now(lambda c: views.fold_counts(c, 2)) == before


def test_no_journal_decides_how_many_series_there_are():
    """Rows with names that this version does not know are counted together."""
    metrics = Metrics()
    series = len(metrics.exposition().splitlines())
    plain = {"file": {"done": 1, "failed": 1, "timed_out": 1, "refused": 1, "planned": 1}}
    for number in range(500):
        name = f'n{number}\n" 中'
        observed = {
            "sources": {name: {name: 1, "done": 1}, **plain},
            "refused": {},
            "latency_buckets": {name: 1, "10": 1},
            "latency_sum_ms": 1,
        }
        packed = {"token_used": 1, "drops": {name: 1}}
        for action, body in ((Action.OBSERVATION_JOBS, observed), (Action.PACKET_COMPILED, packed)):
            metrics.take(Counted(number, str(action), "", canonical_json(body)))
    lines = metrics.exposition().splitlines()
    assert 'observation_jobs_total{source="other",status="other"} 500.0' in lines
    assert 'observation_jobs_total{source="file",status="done"} 500.0' in lines
    assert 'orientation_fact_drop_total{reason="other"} 500.0' in lines
    assert len(lines) < series + 20

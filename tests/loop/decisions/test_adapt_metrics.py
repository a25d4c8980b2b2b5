"""The metrics of profile changes, jobs and dropped facts add up, however the journal is read."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from cockpit.access.principals import agent
from cockpit.core.canonical_json import canonical_json
from cockpit.loop.views.metrics import Counted, Metrics, measured
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
    ended = {
        how: found[("profile_temporary_change_ended_total", how)]
        for how in ("reverted", "promoted", "rolled_back")
    }
    assert ended == {"reverted": 1, "promoted": 0, "rolled_back": 1}
    assert found[("profile_temporary_change_started_total", "")] == sum(ended.values())
    assert found[("profile_rollback_total", "")] == 3


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

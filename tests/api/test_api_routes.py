"""The six routes, health and metrics: the answer of each to a caller with the right scope."""

from __future__ import annotations

import json

import pytest
from api_world import (
    ADMIN,
    API,
    APPROVE,
    PROPOSE,
    READ,
    Project,
    back,
    told,
)
from starlette.testclient import TestClient

from cockpit.access.principals import PERSON
from cockpit.loop.decisions.decision_outcome import DecisionOutcome
from cockpit.loop.decisions.propose_profile_change import propose_profile_change
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.orient.profile_changes.profile_json import import_profile, profile_document
from cockpit.store.context import packets, profiles
from cockpit.store.db.transaction import Tx

pytestmark = pytest.mark.slow


def proposed(at: Project, http: TestClient, **fields: object) -> str:
    """A change that waits."""
    bearer = at.bearer("ci", PROPOSE)
    made = http.post(f"{API}/proposals", json=at.change(**fields), headers=bearer)
    assert made.status_code == 201, made.text
    return str(made.json()["proposal_id"])


def shown(at: Project, http: TestClient, proposal_id: str) -> dict[str, str]:
    """The body of an approval: the digest of the change as it is shown."""
    look = http.get(f"/api/proposals/{proposal_id}", headers=at.bearer("lead", READ))
    assert look.status_code == 200, look.text
    return {"shown_digest": look.json()["shown_digest"]}


def test_the_current_profile_is_whole(at: Project, http: TestClient) -> None:
    bearer = at.bearer("ci", READ)
    found = http.get(f"{API}/profile/current", headers=bearer)
    assert found.status_code == 200
    assert found.headers["x-content-type-options"] == "nosniff"
    body = found.json()
    assert len(body["bands"]) == 6
    assert body["total_token_budget"] == 150_000
    named = http.get(
        f"{API}/profile/current", params={"profile_id": body["profile_id"]}, headers=bearer
    )
    assert named.json() == body
    none = http.get(f"{API}/profile/current", params={"profile_id": "none"}, headers=bearer)
    told(none, 404, "not_found")


def test_a_change_is_proposed_approved_and_holds(at: Project, http: TestClient) -> None:
    proposal_id = proposed(at, http)
    kept = at.changes()[0]
    assert (kept.proposal_id, kept.requested_by, kept.status) == (proposal_id, "ci", "pending")
    lead = at.bearer("lead", APPROVE, READ)
    carried = shown(at, http, proposal_id)
    done = http.post(f"{API}/proposals/{proposal_id}/approve", json=carried, headers=lead)
    assert done.status_code == 200, done.text
    version = done.json()["version"]
    assert done.json() == {"proposal_id": proposal_id, "status": "approved", "version": version}
    current = http.get(f"{API}/profile/current", headers=lead).json()
    assert current["version"] == version
    assert current["adaptation"]["proposal_id"] == proposal_id
    assert current["adaptation"]["waves_left"] == 3
    assert at.changes()[0].approved_by == "lead"
    assert at.recorded("orientation.profile.approved")[-1] == ("lead", "")
    again = http.post(f"{API}/proposals/{proposal_id}/approve", json=carried, headers=lead)
    told(again, 409, "already_decided")
    other = http.post(
        f"{API}/proposals",
        json=at.change(rules=[{"rule_id": "search", "priority_weight": 1.5}]),
        headers=at.bearer("other", PROPOSE),
    )
    body = told(other, 409, "adaptation_running")
    assert body["verdict"][0]["ok"] is False
    back(at)


def test_a_key_answers_once_for_one_request_of_one_namespace(at: Project, http: TestClient) -> None:
    where, change, before = f"{API}/proposals", at.change(), len(at.changes())
    one, other = (at.bearer(name, PROPOSE) | {"Idempotency-Key": "k-1"} for name in ("ci", "cd"))
    first, again, theirs = (http.post(where, json=change, headers=who) for who in (one, one, other))
    assert (first.status_code, again.status_code, theirs.status_code) == (201, 201, 201)
    assert again.json() == first.json() != theirs.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert len(at.changes()) == before + 2
    changed = http.post(where, json=change | {"reason": "a flood"}, headers=one)
    told(changed, 422, "key_reused")
    elsewhere = http.post(where, params={"profile_id": "default"}, json=change, headers=one)
    told(elsewhere, 422, "key_reused")
    assert len(at.changes()) == before + 2


def test_a_change_is_approved_only_as_it_was_shown(at: Project, http: TestClient) -> None:
    waiting = proposed(at, http, reason="listed")
    reader = at.bearer("watch", READ)
    listed = http.get("/api/proposals?kind=profile&status=pending", headers=reader).json()["items"]
    assert (listed[0]["proposal_id"], listed[0]["kind"]) == (waiting, "profile")
    lead = at.bearer("lead", APPROVE)
    where = f"{API}/proposals/{waiting}/approve"
    unseen = http.post(where, json={"reason": "unseen"}, headers=lead)
    assert waiting in told(unseen, 428, "digest_required")["detail"]
    told(http.post(where, json={"shown_digest": "0" * 64}, headers=lead), 409, "stale")
    keyed = {**lead, "Idempotency-Key": "approve"}
    done = http.post(where, json={"shown_digest": listed[0]["shown_digest"]}, headers=keyed)
    assert done.status_code == 200, done.text
    again = http.post(where, json={"shown_digest": listed[0]["shown_digest"]}, headers=keyed)
    assert (again.status_code, again.json()) == (200, done.json())
    back(at)


def test_only_an_admin_approves_what_holds_for_good(at: Project, http: TestClient) -> None:
    name = profiles.initial_profile(150_000).profile_id

    def step(tx: Tx) -> DecisionOutcome:
        base = profiles.load_current(tx.connection, name)
        body = profile_document(base)
        body["rules"][0]["priority_weight"] = 1.25
        change = import_profile(json.dumps(body), base, waves=0, reason="for good")
        return propose_profile_change(
            tx, RuntimeSettings(), change, PERSON, profile_id=name, proposal_id="p-good"
        )

    assert at.store.write_now(step).status == "pending"
    lead = at.bearer("lead", APPROVE)
    carried, where = shown(at, http, "p-good"), f"{API}/proposals/p-good/approve"
    told(http.post(where, json=carried, headers=lead), 403, "not_allowed")
    chief = at.bearer("chief", APPROVE, ADMIN)
    assert http.post(where, json=carried, headers=chief).status_code == 200


def test_the_packet_and_the_feedback_of_a_wave(
    at: Project, http: TestClient, waves: tuple[str, str]
) -> None:
    bearer = at.bearer("ci", READ)
    found = http.get(f"{API}/packets/{waves[0]}", headers=bearer).json()
    stored = at.store.read_now(lambda c: packets.load(c, waves[0]))
    assert found["digest"] == stored.digest
    assert packets.packet_from_body(found).digest == stored.digest
    assert list(found["sources"].values()) == ["shapes.py"]
    found = http.get(f"{API}/feedback/{waves[0]}", headers=bearer).json()
    assert found["wave_id"] == waves[0]
    assert found["history"][-1]["feedback_id"] == found["feedback_id"]
    for path in ("packets/w-none", "feedback/w-none", f"feedback/{waves[1]}"):
        told(http.get(f"{API}/{path}", headers=bearer), 404, "not_found")


def test_a_change_is_rejected_with_a_reason(at: Project, http: TestClient) -> None:
    where = f"{API}/proposals/{proposed(at, http)}/reject"
    done = http.post(where, json={"reason": "not now"}, headers=at.bearer("lead", APPROVE))
    assert done.json()["status"] == "rejected"
    assert at.changes()[0].rejection_reason == "not now"


def test_health_wants_no_token_and_tells_nothing(http: TestClient) -> None:
    found = http.get("/health")
    assert (found.status_code, sorted(found.json())) == (200, ["status", "version"])


def test_the_metrics_are_counted_once_however_often_they_are_asked_for(
    at: Project, http: TestClient
) -> None:
    bearer = at.bearer("watch", READ)

    def count() -> float:
        text = http.get("/metrics", headers=bearer).text
        lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
        return float(lines['profile_proposal_total{status="proposed"}'])

    proposed(at, http)
    before = len(at.recorded("orientation.profile.proposed"))
    assert [count(), count()] == [before, before]
    proposed(at, http)
    assert count() == before + 1

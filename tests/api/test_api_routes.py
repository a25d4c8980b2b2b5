"""The six routes, health and metrics: the answer of each to a caller with the right scope."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from api_world import (
    ADMIN,
    API,
    APPROVE,
    COMMAND,
    PATIENCE_S,
    PROPOSE,
    READ,
    Project,
    back,
    project,
    served,
    told,
)

from cockpit.access.principals import PERSON
from cockpit.access.token_scopes import SESSIONS_RUN
from cockpit.loop.decisions.decision_outcome import DecisionOutcome
from cockpit.loop.decisions.propose_profile_change import propose_profile_change
from cockpit.loop.intake.fork_session import list_waves_to_fork
from cockpit.loop.planner.estimate_session import EstimateInput, make_estimate
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.orient.profile_changes.profile_json import import_profile, profile_document
from cockpit.store.context import packets, profiles
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow


def proposed(at: Project, http: httpx2.Client, **fields: object) -> str:
    """A change that waits."""
    bearer = at.bearer("ci", PROPOSE)
    made = http.post(f"{API}/proposals", json=at.change(**fields), headers=bearer)
    assert made.status_code == 201, made.text
    return str(made.json()["proposal_id"])


def shown(at: Project, http: httpx2.Client, proposal_id: str) -> dict[str, str]:
    """The body of an approval: the digest of the change as it is shown."""
    look = http.get(f"{API}/proposals/{proposal_id}", headers=at.bearer("lead", READ))
    assert look.status_code == 200, look.text
    return {"shown_digest": look.json()["shown_digest"]}


def test_before_any_session_the_current_profile_is_the_shipped_one(tmp_path: Path) -> None:
    with project(tmp_path) as new, served(new) as address:
        bearer = new.bearer("ci", READ)
        found = httpx2.get(f"{address}{API}/profile/current", headers=bearer, timeout=PATIENCE_S)
        assert found.status_code == 200
        assert (found.json()["version"], found.json()["adaptation"]) == (1, None)


def test_the_server_writes_the_structured_log(tmp_path: Path) -> None:
    log = tmp_path / "steps.jsonl"
    rules = [{"rule_id": "search", "priority_weight": 2.5}]
    change = {"base_profile_version": 1, "effective_waves": 3, "rules": rules}
    with project(tmp_path) as new, served(new, COCKPIT_LOG_JSON=str(log)) as address:
        bearer = new.bearer("ci", PROPOSE)
        where = f"{address}{API}/proposals"
        made = httpx2.post(where, json=change, headers=bearer, timeout=PATIENCE_S)
        assert made.status_code == 201, made.text
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    proposed_lines = [line for line in lines if line["action"] == "orientation.profile.proposed"]
    assert [(line["actor"], line["profile_version"]) for line in proposed_lines] == [("ci", 1)]
    assert proposed_lines[0]["profile_id"]
    assert all(isinstance(line["latency_ms"], int) for line in lines)


def test_the_current_profile_is_whole(at: Project, http: httpx2.Client) -> None:
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


def test_a_change_is_proposed_approved_and_holds(at: Project, http: httpx2.Client) -> None:
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


def test_a_change_is_rejected_with_a_reason(at: Project, http: httpx2.Client) -> None:
    proposal_id = proposed(at, http)
    lead = at.bearer("lead", APPROVE)
    said = {"reason": "not now"}
    done = http.post(f"{API}/proposals/{proposal_id}/reject", json=said, headers=lead)
    assert done.json() == {"proposal_id": proposal_id, "status": "rejected", "version": None}
    assert at.changes()[0].rejection_reason == "not now"
    late = http.post(
        f"{API}/proposals/{proposal_id}/approve", json=shown(at, http, proposal_id), headers=lead
    )
    told(late, 409, "already_decided")


def test_what_was_shown_is_what_is_decided(at: Project, http: httpx2.Client) -> None:
    proposal_id = proposed(at, http)
    said = {"shown_digest": "0" * 64}
    lead = at.bearer("lead", APPROVE)
    stale = http.post(f"{API}/proposals/{proposal_id}/approve", json=said, headers=lead)
    told(stale, 409, "stale")
    assert at.changes()[0].status == "pending"


async def test_two_decide_at_once_and_one_does(
    at: Project, http: httpx2.Client, address: str
) -> None:
    proposal_id = proposed(at, http)
    lead = at.bearer("lead", APPROVE)
    carried = shown(at, http, proposal_id)
    async with httpx2.AsyncClient(base_url=address, headers=lead, timeout=PATIENCE_S) as client:
        answers = await asyncio.gather(
            *(
                client.post(f"{API}/proposals/{proposal_id}/{verdict}", json=carried)
                for verdict in ("approve", "reject", "approve", "reject")
            )
        )
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200, 409, 409, 409]
    decided = [answer.json()["status"] for answer in answers if answer.status_code == 200]
    assert decided == [at.changes()[0].status]
    if decided == ["approved"]:
        back(at)


def test_a_repeat_with_the_same_key_is_the_same_proposal(at: Project, http: httpx2.Client) -> None:
    before = len(at.changes())
    one, other = (at.bearer(name, PROPOSE) | {"Idempotency-Key": "k-1"} for name in ("ci", "cd"))
    first, again, theirs = (
        http.post(f"{API}/proposals", json=at.change(), headers=who) for who in (one, one, other)
    )
    assert (first.status_code, again.status_code, theirs.status_code) == (201, 200, 201)
    assert again.json() == first.json()
    assert theirs.json()["proposal_id"] != first.json()["proposal_id"]
    assert len(at.changes()) == before + 2
    refused = [
        http.post(f"{API}/proposals", json={"bands": 1}, headers={**one, "Idempotency-Key": "k-2"})
        for _ in range(2)
    ]
    ids = {told(answer, 400, "malformed")["proposal_id"] for answer in refused}
    assert len(ids) == 1
    assert len(at.changes()) == before + 3


def test_a_key_with_another_body_or_profile_is_refused(at: Project, http: httpx2.Client) -> None:
    bearer = at.bearer("ci", PROPOSE) | {"Idempotency-Key": "k-9"}
    where = f"{API}/proposals"
    change = at.change()
    first = http.post(where, json=change, headers=bearer)
    assert first.status_code == 201
    before = len(at.changes())
    other = http.post(where, json=change | {"reason": "a flood"}, headers=bearer)
    told(other, 422, "key_reused")
    elsewhere = http.post(where, params={"profile_id": "default"}, json=change, headers=bearer)
    told(elsewhere, 422, "key_reused")
    unread = http.post(where, content=b"{", headers=bearer | {"Content-Type": "application/json"})
    told(unread, 422, "key_reused")
    same = http.post(
        where,
        content=json.dumps(change, indent=2).encode(),
        headers=bearer | {"Content-Type": "application/json"},
    )
    assert (same.status_code, same.json()) == (200, first.json())
    assert len(at.changes()) == before


_SEND = """
import sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], sys.argv[2].encode(), {
    "Authorization": sys.argv[3], "Content-Type": "application/json"})
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


def test_the_users_own_token_decides_nothing_from_an_agents_shell(
    at: Project, http: httpx2.Client
) -> None:
    """The root token is a file of the user: who sends it is asked of the kernel as well.

    A system that does not say who sends it is refused, too.
    """
    waiting = proposed(at, http, reason="by an agent")
    carried = json.dumps(shown(at, http, waiting))
    root = at.bearer("main", READ, APPROVE, ADMIN)["Authorization"]
    for verdict in ("approve", "reject"):
        where = f"{http.base_url}{API}/proposals/{waiting}/{verdict}".replace("//api", "/api")
        ways = ([], ["env", "-u", "CLAUDECODE"], ["setsid", "-w"])
        for words in (each for each in ways if not each or shutil.which(each[0])):
            done = subprocess.run(
                [*words, sys.executable, "-c", _SEND, where, carried, root],
                env={**at.env, "CLAUDECODE": "1"}, capture_output=True, text=True,
            )  # fmt: skip
            assert done.stdout.startswith("403 ") and "for you alone" in done.stdout, done
    assert at.store.read_now(lambda c: proposals.load(c, waiting)).status == "pending"
    lead = at.bearer("lead", APPROVE)
    done = http.post(f"{API}/proposals/{waiting}/approve", content=carried.encode(),
                     headers=lead | {"Content-Type": "application/json"})  # fmt: skip
    assert done.status_code == 200, done.text
    back(at)


def test_changes_are_listed_and_shown_with_the_digest_that_approves_them(
    at: Project, http: httpx2.Client
) -> None:
    waiting = proposed(at, http, reason="listed")
    refused = http.post(
        f"{API}/proposals", json=at.change(effective_waves=5_000), headers=at.bearer("ci", PROPOSE)
    ).json()["proposal_id"]
    reader = at.bearer("watch", READ)
    listed = http.get(f"{API}/proposals", headers=reader).json()["proposals"]
    assert [row["proposal_id"] for row in listed[:2]] == [refused, waiting]
    assert (listed[0]["status"], listed[0]["shown_digest"]) == ("rejected", None)
    assert listed[0]["change"]["effective_waves"] == 5_000
    look = http.get(f"{API}/proposals/{waiting}", headers=reader).json()
    assert look == listed[1]
    stored = at.store.read_now(lambda c: proposals.load(c, waiting))
    assert (look["shown_digest"], look["body"]) == (stored.shown_digest, stored.body)
    pending = http.get(f"{API}/proposals", params={"status": "pending"}, headers=reader).json()
    assert {row["status"] for row in pending["proposals"]} == {"pending"}
    one = http.get(f"{API}/proposals", params={"limit": 1}, headers=reader).json()
    assert len(one["proposals"]) == 1
    told(http.get(f"{API}/proposals", params={"status": "x"}, headers=reader), 400, "usage")
    told(http.get(f"{API}/proposals/p-none", headers=reader), 404, "not_found")
    lead = at.bearer("lead", APPROVE)
    for body in ({}, {"reason": "unseen"}):
        unseen = http.post(f"{API}/proposals/{waiting}/approve", json=body, headers=lead)
        assert waiting in told(unseen, 428, "digest_required")["detail"]
    carried = {"shown_digest": look["shown_digest"]}
    done = http.post(f"{API}/proposals/{waiting}/approve", json=carried, headers=lead)
    assert done.status_code == 200, done.text
    back(at)


def test_only_an_admin_approves_what_holds_for_good(at: Project, http: httpx2.Client) -> None:
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


def test_the_packet_of_a_wave(at: Project, http: httpx2.Client, waves: tuple[str, str]) -> None:
    bearer = at.bearer("ci", READ)
    found = http.get(f"{API}/packets/{waves[0]}", headers=bearer).json()
    stored = at.store.read_now(lambda c: packets.load(c, waves[0]))
    assert found["digest"] == stored.digest
    assert packets.packet_from_body(found).digest == stored.digest
    assert list(found["sources"].values()) == ["shapes.py"]
    told(http.get(f"{API}/packets/w-none", headers=bearer), 404, "not_found")


def test_the_feedback_of_a_wave(at: Project, http: httpx2.Client, waves: tuple[str, str]) -> None:
    bearer = at.bearer("ci", READ)
    found = http.get(f"{API}/feedback/{waves[0]}", headers=bearer).json()
    assert found["wave_id"] == waves[0]
    assert found["history"][-1]["feedback_id"] == found["feedback_id"]
    told(http.get(f"{API}/feedback/{waves[1]}", headers=bearer), 404, "not_found")
    told(http.get(f"{API}/feedback/w-none", headers=bearer), 404, "not_found")


def test_health_wants_no_token_and_tells_nothing(http: httpx2.Client) -> None:
    found = http.get("/health")
    assert (found.status_code, sorted(found.json())) == (200, ["status", "version"])


def test_the_metrics_are_counted_once_however_often_they_are_asked_for(
    at: Project, http: httpx2.Client
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


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "203.0.113.7"])
def test_an_address_that_is_none_is_refused_in_words(at: Project, host: str) -> None:
    done = subprocess.run(
        [*COMMAND, "serve", "--host", host, "--port", "0"],
        cwd=at.root,
        env=at.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("cockpit: ")


def test_the_audit_log_is_read_page_by_page(at: Project, http: httpx2.Client) -> None:
    proposed(at, http)
    bearer = at.bearer("auditor", "audit.read")
    pages, after = [], 0
    while True:
        body = http.get(
            "/api/admin/audit", params={"after": after, "limit": 7}, headers=bearer
        ).json()
        pages.append(body["rows"])
        if body["next"] is None:
            break
        after = body["next"]
    rows = [row for page in pages for row in page]
    assert [row["seq"] for row in rows] == list(range(1, body["last_seq"] + 1))
    assert all(row["digest"] for row in rows)
    only = {"action": "orientation.profile.proposed"}
    named = http.get("/api/admin/audit", params=only, headers=bearer).json()["rows"]
    assert named == [row for row in rows if row["action"] == only["action"]]
    wave_rows = [row for row in rows if row["session_id"]]
    session = {"session_id": wave_rows[0]["session_id"]}
    assert (
        http.get("/api/admin/audit", params=session, headers=bearer).json()["rows"]
        == [row for row in wave_rows if row["session_id"] == session["session_id"]][:100]
    )


def test_the_estimate_of_a_session_is_read(at: Project, http: httpx2.Client) -> None:
    given = EstimateInput(900, 1e-6)
    at.store.write_now(
        lambda tx: make_estimate(
            tx, subject="T-4/1", unit="task", kind="bug", model="anthropic:x", given=given
        )
    )
    bearer = at.bearer("ci", READ)
    found = http.get(f"{API}/estimates/T-4/1", headers=bearer).json()
    assert (found["subject"], found["kind"], found["actual"]) == ("T-4/1", "bug", None)
    assert found["first"]["basis"] == "defaults"
    assert found["first"]["waves"]["low"] <= found["now"]["waves"]["high"]
    assert http.get(f"{API}/estimates/s-none", headers=bearer).status_code == 404
    assert http.get(f"{API}/estimates/T-4/1", headers=at.bearer("x", PROPOSE)).status_code == 403


def test_a_session_is_forked_once_for_a_key(
    at: Project, http: httpx2.Client, waves: tuple[str, str]
) -> None:
    source = waves[0].rpartition("-w")[0]
    ended = at.store.read_now(lambda c: list_waves_to_fork(c, source))
    where, bearer = f"/api/sessions/{source}/fork", at.bearer("runner", SESSIONS_RUN)
    carried = {**bearer, "Idempotency-Key": "fork-1"}
    first = http.post(where, json={"wave": ended[0]}, headers=carried)
    assert (first.status_code, first.json()["status"]) == (201, "waiting")
    again = http.post(where, json={"wave": ended[0]}, headers=carried)
    assert again.json()["session_id"] == first.json()["session_id"]
    assert first.headers["location"] == f"/api/sessions/{first.json()['session_id']}"
    told(http.post(where, json={"wave": 900}, headers=bearer), 404, "not_found")
    told(http.post(where, json={"wave": 0}, headers=bearer), 400, "malformed")
    told(http.post(where, json={}, headers=at.bearer("ci", READ)), 403, "not_allowed")
    assert [actor for actor, _ in at.recorded("session.forked")] == ["runner"]

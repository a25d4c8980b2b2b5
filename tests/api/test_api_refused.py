"""What the server refuses, and that a refused request changes nothing."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from api_world import ADDRESS, API, APPROVE, PROPOSE, READ, Project, api_client, ask, told
from starlette.testclient import TestClient

from cockpit.api.application import application
from cockpit.api.middleware import Gate
from cockpit.core.clock import FixedClock
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.journal.refused_requests import RefusedRequests
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow

JSON = {"Content-Type": "application/json"}
EVERYTHING = (READ, PROPOSE, APPROVE, "orientation.admin", "audit.read")


def test_the_namespace_is_the_tokens_whatever_a_body_says(at: Project, http: TestClient) -> None:
    bearer = at.bearer("agent/one", PROPOSE)
    for field in ("namespace", "requested_by"):
        spoofed = http.post(f"{API}/proposals", json=at.change(**{field: "main"}), headers=bearer)
        body = told(spoofed, 403, "namespace_spoofed")
        kept = at.changes()[0]
        assert (kept.proposal_id, kept.requested_by) == (body["proposal_id"], "agent/one")
        assert (kept.status, kept.rejection_code) == ("rejected", "namespace_spoofed")
    own = http.post(f"{API}/proposals", json=at.change(namespace="agent/one"), headers=bearer)
    assert own.status_code == 201, own.text
    lead = at.bearer("lead", APPROVE)
    for field in ("namespace", "approved_by", "decided_by"):
        claimed = http.post(
            f"{API}/proposals/{own.json()['proposal_id']}/approve",
            json={field: "main"},
            headers=lead,
        )
        told(claimed, 400, "malformed")
    assert at.changes()[0].status == "pending"


BAD = (
    b"{",
    b'{"reason": "\xff"}',
    b"[]",
    b'{"base_profile_version": NaN, "effective_waves": 3}',
    b'{"base_profile_version": 1, "effective_waves": 1e999}',
    b'{"base_profile_version": 1, "effective_waves": ' + b"9" * 50 + b"}",
    b'{"base_profile_version": 1, "effective_waves": -3}',
    b'{"base_profile_version": 1, "base_profile_version": 1, "effective_waves": 3}',
    b'{"bands": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    b'{"reason": "\\ud800"}',
    b'{"reason": "' + b"x" * 300_000 + b'"}',
    b"",
)


def test_a_body_that_is_not_plainly_right_changes_nothing(at: Project, http: TestClient) -> None:
    headers = at.bearer("ci", PROPOSE, APPROVE) | JSON
    pending = [change for change in at.changes() if change.status == "pending"]
    for body in BAD:
        told(http.post(f"{API}/proposals", content=body, headers=headers), 400, "malformed")
        if body:
            where = f"{API}/proposals/p-none/reject"
            told(http.post(where, content=body, headers=headers), 400, "malformed")
    assert [change for change in at.changes() if change.status == "pending"] == pending


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"base_profile_version": 99}, 409, "stale_base"),
        ({"bands": {"identity": {"min_tokens": 1}}}, 422, "floor_below_minimum"),
        ({"scopes": ["orientation.admin"]}, 403, "capability_relaxed"),
    ],
)
def test_the_guard_refuses_as_everywhere(
    at: Project, http: TestClient, fields: dict[str, Any], status: int, code: str
) -> None:
    answer = http.post(
        f"{API}/proposals", json=at.change(**fields), headers=at.bearer("main", *EVERYTHING)
    )
    body = told(answer, status, code)
    assert code in {entry["code"] for entry in body["verdict"]}
    assert at.recorded("orientation.profile.rejected")[-1] == ("guard", code)


def test_only_json_of_a_decent_size_is_read(at: Project, http: TestClient) -> None:
    bearer = at.bearer("ci", PROPOSE)
    before = len(at.changes())
    change = json.dumps(at.change()).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"):
        headers = {**bearer, "Content-Type": kind}
        told(http.post(f"{API}/proposals", content=change, headers=headers), 415, "not_json")
    told(http.post(f"{API}/proposals", content=change, headers=bearer), 415, "not_json")
    long = b" " * 1_000_001
    told(http.post(f"{API}/proposals", content=long, headers=bearer | JSON), 413, "too_large")
    pieces = (b" " * 100_000 for _ in range(12))
    told(http.post(f"{API}/proposals", content=pieces, headers=bearer | JSON), 413, "too_large")
    assert len(at.changes()) == before


def test_another_host_or_origin_is_refused_even_with_a_token(at: Project, http: TestClient) -> None:
    bearer, port = at.bearer("ci", READ), ADDRESS.port
    where = f"{API}/profile/current"
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1:80",
        "127.0.0.1",
        f"127.0.0.1.evil.example:{port}",
        f"2130706433:{port}",
    ):
        told(http.get(where, headers={**bearer, "Host": host}), 421, "host_refused")
        told(http.get("/health", headers={"Host": host}), 421, "host_refused")
    for origin in (
        "http://evil.example",
        "null",
        "http://127.0.0.1:80",
        f"https://127.0.0.1:{port}",
    ):
        told(http.get(where, headers={**bearer, "Origin": origin}), 403, "origin_refused")
    for name in ("127.0.0.1", "localhost"):
        own = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}"}
        assert http.get(where, headers={**bearer, **own}).status_code == 200


def test_what_is_not_there_is_told_as_a_problem(at: Project, http: TestClient) -> None:
    bearer = at.bearer("ci", *EVERYTHING)
    for path in ("/", "/docs", "/api", f"{API}/profile/current/"):
        told(http.get(path, headers=bearer), 404, "not_found")
    hostile = f"{API}/packets/%1b%5D52;c;x%07%00%ff"
    told(http.get(hostile, headers=bearer), 404, "not_found")
    for verdict in ("approve", "reject"):
        unknown = http.post(f"{API}/proposals/p-none/{verdict}", headers=bearer)
        told(unknown, 404, "not_found")
    wrong = http.delete(f"{API}/proposals", headers=bearer)
    told(wrong, 405, "method_not_allowed")
    assert wrong.headers["allow"] == "POST"
    both = http.delete("/api/tasks", headers=bearer)
    assert told(both, 405, "method_not_allowed")
    assert sorted(both.headers["allow"].split(", ")) == ["GET", "POST"]
    told(
        http.get(f"{API}/profile/current", params={"profile_id": "x" * 200}, headers=bearer),
        400,
        "usage",
    )


def test_a_proposal_of_another_kind_is_not_decided_here(at: Project, http: TestClient) -> None:
    at.store.write_now(lambda tx: ask(tx, "p-action"))
    chief = at.bearer("chief", *EVERYTHING)
    told(http.post(f"{API}/proposals/p-action/approve", headers=chief), 404, "not_found")
    assert at.store.read_now(lambda c: proposals.load(c, "p-action")).status == "pending"


async def _never(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("the gate let it through")


async def through_the_gate(*messages: dict[str, Any]) -> tuple[int, str]:
    """What a client that sends these and then nothing more is answered: status and code."""
    gate = Gate(_never, ADDRESS, patience_s=0.01)
    headers = [(b"host", b"127.0.0.1:1"), (b"content-type", b"application/json")]
    waiting, answers = list(messages), []

    async def receive() -> Any:
        return waiting.pop(0) if waiting else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        answers.append(message)

    await gate({"type": "http", "method": "POST", "headers": headers}, receive, send)
    return answers[0]["status"], json.loads(answers[1]["body"])["code"]


HALF = {"type": "http.request", "body": b"{", "more_body": True}


async def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    assert await through_the_gate(HALF) == (408, "too_slow")


async def test_who_goes_away_in_the_middle_has_decided_nothing() -> None:
    gone = {"type": "http.disconnect"}
    assert await through_the_gate(HALF, gone) == (400, "malformed")
    assert await through_the_gate(gone) == (400, "malformed")


async def test_what_nobody_foresaw_tells_the_client_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bearer = {"Authorization": "Bearer ckp_x"}
    store = Store.open(tmp_path / "cockpit.db")
    store.close()
    broken: Any = object()
    for served, code in ((store, "store"), (broken, "error")):
        gate = Gate(application(served, RuntimeSettings()), ADDRESS)
        async with api_client(gate) as client:
            body = told(await client.get("/metrics", headers=bearer), 500, code)
        assert str(tmp_path) not in json.dumps(body)
    assert "AttributeError" in capsys.readouterr().err


async def test_a_flood_of_refused_requests_adds_two_rows_of_each_kind_a_minute(
    tmp_path: Path,
) -> None:
    """The first at once, the others counted; the next minute's again."""
    clock = FixedClock()
    with Store.open(tmp_path / "cockpit.db", clock) as store:
        refused = RefusedRequests(store, "http")
        gate = Gate(application(store, RuntimeSettings(), refused), ADDRESS, refused=refused)
        async with api_client(gate) as client:
            path = f"{API}/profile/current"
            for at in range(50):
                wrong = {"Authorization": f"Bearer wrong-{at}"}
                assert (await client.get(path, headers=wrong)).status_code == 401
                assert (await client.get(path)).status_code == 401
                page = {"Origin": "http://evil.example"}
                assert (await client.get(path, headers=page)).status_code == 403
        await refused.flush()

        def rows(connection: sqlite3.Connection) -> list[tuple[str, int]]:
            return [
                (row.error_code, row.raw_detail()["count"])
                for row in journal.rows(connection)
                if row.action == "access.refused"
            ]

        assert sorted(store.read_now(rows)) == [
            (code, count)
            for code in ("origin_refused", "token_missing", "token_unknown")
            for count in (1, 49)
        ]
        assert "wrong-" not in str(store.read_now(journal.rows))
        clock.advance(61)
        await refused.add("token_missing", "again", "GET /")
        assert store.read_now(rows)[-1] == ("token_missing", 1)

"""Tasks, events and tokens over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from api_world import api_client, fill_store, issue, told

from cockpit.api.application import application
from cockpit.core.clock import FixedClock
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.sessions import events

pytestmark = pytest.mark.slow


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def store(tmp_path: Path, clock: FixedClock) -> Iterator[Store]:
    with Store.open(tmp_path / "cockpit.db", clock) as opened:
        yield opened


def client_of(store: Store) -> httpx2.AsyncClient:
    return api_client(application(store, RuntimeSettings()))


async def test_a_task_is_created_once_and_changed_as_it_was_read(store: Store) -> None:
    bearer = issue(store, "ci", "work.read", "work.write")
    keyed = {**bearer, "Idempotency-Key": "k"}
    async with client_of(store) as client:
        made = await client.post("/api/tasks", json={"title": "round it"}, headers=keyed)
        again = await client.post("/api/tasks", json={"title": "round it"}, headers=keyed)
        assert (made.status_code, again.json()) == (201, made.json()), made.text
        where = made.headers["location"]
        assert where == f"/api/tasks/{made.json()['id']}"
        other = await client.post("/api/tasks", json={"title": "another"}, headers=keyed)
        told(other, 422, "key_reused")
        read = await client.get(where, headers=bearer)
        tag = {**bearer, "If-Match": read.headers["etag"]}
        changed = await client.patch(where, json={"description": "to the cent"}, headers=tag)
        assert changed.json()["description"] == "to the cent"
        lost = await client.patch(where, json={"description": "up"}, headers=tag)
        told(lost, 412, "precondition_failed")
        moved = await client.patch(where, json={"status": "in_progress"}, headers=bearer)
        assert (moved.status_code, moved.json()["status"]) == (200, "in_progress"), moved.text
        listed = (await client.get("/api/tasks?status=in_progress", headers=bearer)).json()
        assert [task["title"] for task in listed["items"]] == ["round it"]
        for wrong in (
            "/api/tasks?status=x",
            "/api/tasks?status=",
            f"/api/tasks?story_id={'S' * 101}",
        ):
            told(await client.get(wrong, headers=bearer), 400, "usage")
        told(await client.patch(where, json={"by": "main"}, headers=bearer), 400, "malformed")
    assert {row.actor for row in store.read_now(journal.rows) if row.action == "task.changed"} == {
        "ci"
    }


async def test_an_event_is_stored_once_and_reaches_who_follows_the_journal(store: Store) -> None:
    bearer, other = issue(store, "ci", "events.enqueue"), issue(store, "ci/x", "events.enqueue")
    reader = issue(store, "watch", "audit.read")
    event = {"queue": "jobs", "event_type": "job", "payload": {"n": 1}, "source_event_id": "a"}
    async with client_of(store) as client:
        made = await client.post("/api/events", json=event, headers=bearer)
        twice = await client.post("/api/events", json=event, headers=bearer)
        assert (made.status_code, twice.status_code) == (201, 201), made.text
        assert made.json() == twice.json()
        assert (made.json()["source"], made.json()["state"]) == ("ns:ci:jobs", "handled")
        theirs = await client.post("/api/events", json=event, headers=other)
        assert theirs.status_code == 201
        rows = await client.get("/api/journal?action=event.ingested&follow=false", headers=reader)
        seen = [json.loads(line[6:]) for line in rows.text.splitlines() if line[:6] == "data: "]
    assert [row["detail"] for row in seen] == [
        {
            "event_id": answer.json()["event_id"],
            "event_type": "job",
            "source": f"ns:{namespace}:jobs",
            "payload": {"n": 1},
        }
        for answer, namespace in ((made, "ci"), (theirs, "ci/x"))
    ]
    # Nothing claims it, and nothing waits for ever.
    assert store.read_now(lambda c: events.count_waiting(c, "ns:ci:jobs")) == 0


async def test_sessions_events_are_out_of_reach(store: Store) -> None:
    proposal_session = fill_store(store)["session_id"]
    bearer = issue(store, "ci", "events.enqueue")
    async with client_of(store) as client:
        for queue in (f"session/{proposal_session}", "ns:ci:jobs", "", "A", "x" * 65, "../jobs"):
            event = {"queue": queue, "event_type": "person.said", "payload": {}}
            told(await client.post("/api/events", json=event, headers=bearer), 400, "malformed")


async def test_tokens_are_issued_within_the_issuers_scopes(store: Store, clock: FixedClock) -> None:
    bearer = issue(store, "ci", "cap.issue", "cap.revoke", "audit.read", "work.read")
    new = {"namespace": "bot", "scopes": ["work.read"], "expires_s": 60}
    async with client_of(store) as client:
        keyed = {**bearer, "Idempotency-Key": "k"}
        made = await client.post("/api/admin/tokens", json=new, headers=keyed)
        secret, cap_id = made.json()["token"], made.json()["cap_id"]
        assert (made.status_code, secret[:4]) == (201, "ckp_")
        again = await client.post("/api/admin/tokens", json=new, headers=keyed)
        assert (again.json()["cap_id"], again.json()["token"]) == (cap_id, None)
        for namespace, scopes in (("main", ["work.read"]), ("bot", ["work.write"])):
            beyond = {"namespace": namespace, "scopes": scopes}
            told(
                await client.post("/api/admin/tokens", json=beyond, headers=bearer),
                403,
                "not_allowed",
            )
        root = issue(store, "main", "cap.issue", "work.read")
        told(await client.post("/api/admin/tokens", json=new, headers=root), 403, "not_allowed")
        bot = {"Authorization": f"Bearer {secret}"}
        assert (await client.get("/api/tasks", headers=bot)).status_code == 200
        gone = await client.delete(f"/api/admin/tokens/{cap_id}", headers=bearer)
        assert gone.json()["status"] == "revoked"
        told(await client.get("/api/tasks", headers=bot), 401, "token_revoked")
        told(
            await client.delete(f"/api/admin/tokens/{cap_id}", headers=bearer),
            409,
            "illegal_transition",
        )
    assert secret.encode() not in b"".join(
        path.read_bytes() for path in store.path.parent.glob("cockpit.db*")
    )

"""Tasks, work tools, chains, events and tokens over HTTP."""

from __future__ import annotations

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

pytestmark = pytest.mark.slow

EVENTS = ("events.read", "events.enqueue", "events.claim")


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
        tool = "/api/work/update_task_status"
        moved = {"task_id": made.json()["id"], "status": "in_progress"}
        assert (await client.post(tool, json=moved, headers=bearer)).status_code == 200
        listed = (await client.get("/api/tasks?status=in_progress", headers=bearer)).json()
        assert [task["title"] for task in listed["items"]] == ["round it"]
        batch = await client.post("/api/work/get_tasks", json={"limit": 5}, headers=bearer)
        assert "round it" in batch.text
        told(
            await client.post(tool, json={**moved, "by": "main"}, headers=bearer), 400, "malformed"
        )
    assert {row.actor for row in store.read_now(journal.rows) if row.action == "task.created"} == {
        "ci"
    }


async def test_an_event_is_handled_once_and_within_its_namespace(
    store: Store, clock: FixedClock
) -> None:
    bearer, other = issue(store, "ci", *EVENTS), issue(store, "ci/x", *EVENTS)
    event = {"queue": "jobs", "event_type": "job", "payload": {"n": 1}, "source_event_id": "a"}
    async with client_of(store) as client:
        made = await client.post("/api/events", json=event, headers=bearer)
        twice = await client.post("/api/events", json=event, headers=bearer)
        assert (made.status_code, twice.status_code) == (201, 200), made.text
        assert made.json() == twice.json()
        where = made.headers["location"]
        claim = {"queue": "jobs", "lease_s": 30, "limit": 5}
        foreign = await client.post("/api/events/claim", json=claim, headers=other)
        assert foreign.json() == {"events": []}
        told(await client.get(where, headers=other), 404, "not_found")
        assert (await client.get("/api/events", headers=other)).json()["items"] == []
        told(await client.get("/api/events?every=true", headers=other), 403, "not_allowed")
        keyed = {**bearer, "Idempotency-Key": "claim"}
        first = (await client.post("/api/events/claim", json=claim, headers=keyed)).json()
        (leased,) = first["events"]
        assert (await client.post("/api/events/claim", json=claim, headers=bearer)).json() == {
            "events": []
        }
        # An answer that was lost on its way is asked for again, with its lease.
        assert (await client.post("/api/events/claim", json=claim, headers=keyed)).json() == first
        wrong = {"lease_token": "x"}
        told(await client.post(f"{where}/ack", json=wrong, headers=bearer), 409, "stale")
        lease = {"lease_token": leased["lease_token"]}
        told(await client.post(f"{where}/ack", json=lease, headers=other), 404, "not_found")
        clock.advance(31)
        told(await client.post(f"{where}/ack", json=lease, headers=bearer), 409, "stale")
        (leased,) = (await client.post("/api/events/claim", json=claim, headers=bearer)).json()[
            "events"
        ]
        failed = {"lease_token": leased["lease_token"], "error": "no disk"}
        dead = await client.post(f"{where}/dead-letter", json=failed, headers=bearer)
        assert (dead.json()["state"], dead.json()["last_error"]) == ("dead", "no disk")
        stats = (await client.get("/api/events/stats", headers=bearer)).json()["queues"]
        assert [(row["queue"], row["dead"], row["waiting"]) for row in stats] == [("jobs", 1, 0)]
        told(await client.post(f"{where}/retry", headers=other), 404, "not_found")
        assert (await client.post(f"{where}/retry", headers=bearer)).json()["state"] == "waiting"
        (leased,) = (await client.post("/api/events/claim", json=claim, headers=bearer)).json()[
            "events"
        ]
        back = {"lease_token": leased["lease_token"], "error": "later"}
        nacked = await client.post(f"{where}/nack", json=back, headers=bearer)
        assert nacked.json()["state"] == "returned"
        clock.advance(10)
        (leased,) = (await client.post("/api/events/claim", json=claim, headers=bearer)).json()[
            "events"
        ]
        lease = {"lease_token": leased["lease_token"]}
        keyed = {**bearer, "Idempotency-Key": "ack"}
        done = await client.post(f"{where}/ack", json=lease, headers=keyed)
        repeated = await client.post(f"{where}/ack", json=lease, headers=keyed)
        assert (done.json(), repeated.json()["state"]) == (repeated.json(), "handled")


async def test_sessions_events_are_out_of_reach(store: Store) -> None:
    proposal_session = fill_store(store)["session_id"]
    bearer = issue(store, "ci", *EVENTS)
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
        listed = await client.get("/api/admin/tokens", headers=bearer)
        assert secret not in listed.text
        assert cap_id in [item["cap_id"] for item in listed.json()["items"]]
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

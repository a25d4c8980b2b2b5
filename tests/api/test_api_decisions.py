"""Proposals of every kind over HTTP: who decides, once, and over what was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from api_world import api_client, ask, issue, told

from cockpit.access.token_scopes import SCOPES
from cockpit.api.application import application
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import events, messages, proposals

pytestmark = pytest.mark.slow

API = "/api/proposals"
DECIDES = ("orientation.read", "proposals.decide")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "cockpit.db") as opened:
        yield opened


def client_of(store: Store) -> httpx2.AsyncClient:
    return api_client(application(store, RuntimeSettings()))


async def shown(client: httpx2.AsyncClient, bearer: dict[str, str], named: str) -> dict[str, Any]:
    body: dict[str, Any] = (await client.get(f"{API}/{named}", headers=bearer)).json()
    return body


async def test_of_two_clients_who_decide_at_once_one_does(store: Store) -> None:
    store.write_now(lambda tx: ask(tx, "p-one"))
    phone, desk = issue(store, "phone", *DECIDES), issue(store, "desk", *DECIDES)
    async with client_of(store) as first, client_of(store) as second:
        carried = {"shown_digest": (await shown(first, phone, "p-one"))["shown_digest"]}
        answers = await asyncio.gather(
            first.post(
                f"{API}/p-one/decide", json={**carried, "decision": "approve"}, headers=phone
            ),
            second.post(
                f"{API}/p-one/decide", json={**carried, "decision": "reject"}, headers=desk
            ),
        )
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        (late,) = [answer for answer in answers if answer.status_code == 409]
        told(late, 409, "already_decided")
        decided = store.read_now(lambda connection: proposals.load(connection, "p-one"))
        assert decided.decided_by in ("phone", "desk")
        again = await first.get(f"{API}/p-one", headers=phone)
        assert again.json()["status"] == decided.status
    assert not store.read_now(verify_chain.verify).broken


async def test_only_the_user_and_services_that_were_given_it_decide(store: Store) -> None:
    store.write_now(lambda tx: ask(tx, "p-one"))
    everything = set(SCOPES)
    async with client_of(store) as client:
        reader = issue(store, "ci", "orientation.read")
        carried = {"shown_digest": (await shown(client, reader, "p-one"))["shown_digest"]}
        others = {
            "an agent with every scope": issue(store, "agent/s-1", *everything),
            "a service without it": issue(store, "ci", *(everything - {"proposals.decide"})),
            "the user's token without the user": issue(store, "main", *everything),
            "the user's token without the scope": issue(store, "main", "orientation.read"),
        }
        for bearer in others.values():
            for decision, body in (
                ("approve", carried),
                ("reject", {}),
                ("discuss", {"reason": "why?"}),
                ("answer", {**carried, "answers": ["1"]}),
            ):
                sent = {"decision": decision, **body}
                answer = await client.post(f"{API}/p-one/decide", json=sent, headers=bearer)
                told(answer, 403, "not_allowed")
                # Nor do they learn what is there.
                unknown = await client.post(f"{API}/p-no/decide", json=sent, headers=bearer)
                assert unknown.status_code in (403, 404)
        assert store.read_now(lambda c: proposals.load(c, "p-one")).status == "pending"


async def test_a_decision_is_over_what_was_shown(store: Store) -> None:
    store.write_now(lambda tx: ask(tx, "p-one"))
    phone = issue(store, "phone", *DECIDES)
    path, decide = f"{API}/p-one", f"{API}/p-one/decide"
    approve = {"decision": "approve"}
    async with client_of(store) as client:
        told(await client.post(decide, json=approve, headers=phone), 428, "digest_required")
        unseen = {"decision": "answer", "answers": ["1"]}
        told(await client.post(decide, json=unseen, headers=phone), 428, "digest_required")
        other = {**approve, "shown_digest": "0" * 64}
        told(await client.post(decide, json=other, headers=phone), 409, "stale")
        for wrong in ({"decision": "reject", "by": "main"}, {"decision": "run"}, {}):
            told(await client.post(decide, json=wrong, headers=phone), 400, "malformed")
        first = await client.get(path, headers=phone)
        tag = first.headers["etag"]
        same = await client.get(path, headers={**phone, "If-None-Match": tag})
        assert (same.status_code, same.content) == (304, b"")
        carried = {**approve, "shown_digest": first.json()["shown_digest"]}
        stale = {**phone, "If-Match": '"other"'}
        told(
            await client.post(decide, json=carried, headers=stale),
            412,
            "precondition_failed",
        )
        # A repeat gets the first answer; the same key says nothing else.
        keyed = {**phone, "Idempotency-Key": "k-1", "If-Match": tag}
        done = await client.post(decide, json=carried, headers=keyed)
        assert (done.status_code, done.json()["status"]) == (200, "approved"), done.text
        repeated = await client.post(decide, json=carried, headers=keyed)
        assert (repeated.status_code, repeated.json()) == (200, done.json())
        assert repeated.headers["idempotency-replayed"] == "true"
        reused = await client.post(decide, json={"decision": "reject"}, headers=keyed)
        told(reused, 422, "key_reused")
        # A key of another namespace is another one.
        desk = {**issue(store, "desk", *DECIDES), "Idempotency-Key": "k-1"}
        told(
            await client.post(decide, json=carried, headers=desk),
            409,
            "already_decided",
        )
        changed = await client.get(path, headers={**phone, "If-None-Match": tag})
        assert changed.status_code == 200
        assert changed.headers["etag"] != tag


async def test_a_discussion_is_the_sessions_next_message(store: Store) -> None:
    proposal = store.write_now(lambda tx: ask(tx, "p-one"))
    phone = issue(store, "phone", *DECIDES)
    async with client_of(store) as client:
        said = {"decision": "discuss", "reason": "smaller, please"}
        done = await client.post(f"{API}/p-one/decide", json=said, headers=phone)
        assert done.json() == {"proposal_id": "p-one", "status": "discussed", "version": None}
    rows = store.read_now(lambda c: messages.select_for_session(c, proposal.session_id))
    assert [(row.role, row.text) for row in rows] == [("person", "smaller, please")]
    source = f"session/{proposal.session_id}"
    assert store.read_now(lambda c: events.count_new(c, source)) == 1


async def test_a_context_request_is_narrowed(store: Store) -> None:
    items = [{"item": "file:a.py", "tokens": 3}, {"item": "file:b.py", "tokens": 4}]
    body = {"items": items, "purpose": "see"}
    store.write_now(lambda tx: ask(tx, "p-ctx", kind="context", title="context", body=body))
    phone = issue(store, "phone", *DECIDES)
    async with client_of(store) as client:
        seen = await shown(client, phone, "p-ctx")
        carried = {"decision": "approve", "shown_digest": seen["shown_digest"]}
        wrong = {**carried, "items": ["file:c.py"]}
        told(await client.post(f"{API}/p-ctx/decide", json=wrong, headers=phone), 409, "stale")
        kept = {**carried, "items": ["file:b.py"]}
        done = await client.post(f"{API}/p-ctx/decide", json=kept, headers=phone)
        assert done.status_code == 200, done.text
        assert (await shown(client, phone, "p-ctx"))["narrowed"] == ["file:b.py"]

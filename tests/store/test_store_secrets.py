"""A secret that is handed to any part of the store is nowhere in its files."""

from __future__ import annotations

import sqlite3
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from core.secret_canaries import canaries
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from store.store_world import CANARY, begin, open_store

from cockpit.core.clock import FixedClock
from cockpit.core.secrets import mask, mask_value, replace_surrogates
from cockpit.observe.normalise_facts import make_fact
from cockpit.observe.scope_items import parse_item
from cockpit.store.context import facts
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import fragments, verify_chain
from cockpit.store.journal.details.sessions import SessionCompleted, SessionFailed, SessionWaiting
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import (
    context_requests,
    events,
    messages,
    outbox,
    plans,
    proposals,
    sessions,
    waves,
)

pytestmark = pytest.mark.slow

SAID = f"use {CANARY} for it\nor password = {CANARY}"
TOLD: dict[str, Any] = {"text": SAID, "list": [SAID, {"deep": SAID}], SAID: 1, "token": CANARY}


class Ground:
    """A session with an open wave, and what its parts are handed."""

    def __init__(self, tx: Tx, said: str = SAID, told: dict[str, Any] = TOLD) -> None:
        self.tx, self.said, self.told = tx, said, told
        self.session_id = begin(tx)
        self.wave = waves.create(tx, session_id=self.session_id, trace_id="t")
        self.place = {"session_id": self.session_id, "wave_id": self.wave.wave_id}


def session(g: Ground) -> None:
    begin(
        g.tx,
        title=g.said,
        words=g.said,
        target=g.told,
        limits=g.told,
        project=g.said,
        branch=g.said,
    )
    sessions.change(g.tx, g.session_id, title=g.said, target=g.told, limits=g.told)
    events = {
        "waiting": SessionWaiting(for_=g.said, why=g.said),
        "failed": SessionFailed(message=g.said),
        "completed": SessionCompleted(status="done", summary=g.said),
    }
    for status, entered in events.items():
        sessions.set_status(g.tx, g.session_id, status, detail=entered, result=g.told)


def event(g: Ground) -> None:
    for name, most in (("a", 5), ("b", 1)):
        made = events.ingest(
            g.tx, source=name, source_event_id=name, event_type="t", payload=g.told
        )
        g.tx.execute("UPDATE events SET max_attempts=? WHERE event_id=?", (most, made))
        waiting = events.select_waiting(g.tx, name)
        assert events.claim_waiting(g.tx, waiting, owner=name, lease_s=60)
        events.nack_owned(g.tx, name, g.said)


def wave(g: Ground) -> None:
    waves.advance(g.tx, g.wave.wave_id, "observing")
    waves.fail(g.tx, g.wave.wave_id, retryable=True, error_class="x", message=g.said)


def fact(g: Ground) -> None:
    made = make_fact(
        parse_item("search:" + CANARY), g.said, reference=g.said, outline=g.said,
        provenance=g.told, key=CANARY,
    )  # fmt: skip
    facts.record(g.tx, ordinal=1, pinned_now=g.wave.pinned_now, facts=[made], **g.place)


def proposal(g: Ground) -> None:
    for verdict in ("approved", "rejected", "discussed"):
        body = {"items": [{"item": CANARY, "note": g.said}], **g.told}
        made = proposals.create(
            g.tx,
            proposal_id=verdict,
            kind="context",
            title=g.said,
            body=body,
            risk="low",
            **g.place,
        )
        kept = [made.body["items"][0]["item"]] if verdict == "approved" else None
        proposals.decide(g.tx, verdict, verdict, by="person", reason=g.said, narrowed=kept)


def request(g: Ground) -> None:
    for auto in (True, False):
        made = context_requests.create(
            g.tx, request_id=f"q-{auto}", purpose=g.said, question=g.said, escalation=g.said,
            items=[{"item": CANARY, "note": g.said}], decided_by="x" if auto else "",
            **g.place,
        )  # fmt: skip
        context_requests.apply_decision(
            g.tx, made.request_id, "approved", approved=[CANARY], decided_by="x"
        )
        context_requests.record_fetched(
            g.tx, made.request_id, wave_id="w", outcomes=[{"item": CANARY, "error": g.said}]
        )


def message(g: Ground) -> None:
    messages.start(g.tx, message_id="m-1", **g.place)
    for number, text in enumerate((g.said, CANARY[:12], CANARY[12:], " after", *CANARY)):
        messages.append_delta(g.tx, message_id="m-1", text=text, number=number, **g.place)
    messages.start(g.tx, message_id="m-2", **g.place)
    messages.complete(g.tx, role="agent", text=g.said, message_id="m-2", **g.place)


def plan(g: Ground) -> None:
    calls = [{"name": "run", "title": g.said, "arguments": g.told, "error": g.said, "key": "k"}]
    plans.commit(g.tx, text=g.said, calls=calls, stop="end", **g.place)


def action(g: Ground) -> None:
    def queued(key: str) -> str:
        made = outbox.plan(
            g.tx, position=1, key=key, action_type="run", title=g.said, payload=g.told, **g.place
        )
        outbox.enqueue(g.tx, made.action_id, proposal_id=None, payload=g.told)
        outbox.dispatch(g.tx, made.action_id, "o")
        return made.action_id

    outbox.confirm(g.tx, queued("a"), summary=g.said, detail=g.told)
    outbox.fail(g.tx, queued("b"), status="failure", summary=g.said, detail=g.told)
    outbox.fail(g.tx, queued("c"), status="timeout", summary=g.said, detail=g.told, retry_in_s=1)
    outbox.mark_uncertain(g.tx, queued("d"), g.said)
    dropped = outbox.plan(
        g.tx, position=1, key="f", action_type="run", title=g.said, payload=g.told, **g.place
    )
    outbox.drop(g.tx, dropped.action_id, g.said)


def row(g: Ground) -> None:
    for kind in Action:
        if kind is not Action.MESSAGE_DELTA:
            g.tx.append_row(kind, body={**g.told, "message_id": "m-9"})


ENTRIES = (session, event, wave, fact, proposal, request, message, plan, action, row)


def test_no_entry_lets_a_secret_into_the_files(tmp_path: Path) -> None:
    with open_store(tmp_path, clock=FixedClock()) as store:
        for entry in ENTRIES:
            before = store.read_now(count_masked)
            store.write_now(lambda tx, e=entry: e(Ground(tx)))
            assert store.read_now(count_masked) > before, f"{entry} stored nothing of its text"
        assert store.read_now(verify_chain.verify).ok
        open_files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for content in (open_files, (tmp_path / "cockpit.db").read_bytes()):
        assert b"[masked:" in content
        assert CANARY.encode() not in content
        assert CANARY.encode("utf-16-le") not in content


def count_masked(connection: sqlite3.Connection) -> int:
    return sum("[masked:" in line for line in connection.iterdump())


@pytest.mark.search
def test_no_entry_lets_a_secret_of_any_rule_into_the_files(tmp_path: Path) -> None:
    """Each rule's secret goes to one entry; in a soak to every one."""
    every, entries = list(canaries().values()), ENTRIES[:-1]
    step = max(1, len(entries) // examples(1))
    with open_store(tmp_path, clock=FixedClock()) as store:
        for number, entry in enumerate(entries):
            said = "\n".join(text for text, _ in every[number % step :: step])
            store.write_now(lambda tx, e=entry, s=said: e(Ground(tx, s, {"text": s, "list": [s]})))
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"[masked:" in content
    assert [secret for _, secret in every if secret.encode() in content] == []


@pytest.mark.search
@settings(max_examples=examples(6), deadline=None)
@given(cuts=st.lists(st.integers(1, 90), max_size=8), lead=st.sampled_from(["", "a\nb ", "say: "]))
def test_a_secret_in_pieces_is_never_whole(cuts, lead, tmp_path_factory):
    text = f"{lead}{CANARY} and more\nof it"
    edges = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    pieces = [text[a:b] for a, b in pairwise(edges)]
    with open_store(tmp_path_factory.mktemp("pieces")) as store:
        shown = store.write_now(lambda tx: streamed(tx, pieces))
        assert CANARY not in shown
        assert shown.startswith(lead) and shown.endswith("of it")
        assert mask(shown) == shown
        assert store.read_now(verify_chain.verify).ok


def streamed(tx: Tx, pieces: list[str]) -> str:
    g = Ground(tx)
    messages.start(tx, message_id="m", **g.place)
    for number, piece in enumerate(pieces):
        messages.append_delta(tx, message_id="m", text=piece, number=number, **g.place)
    return "".join(text for _, text in fragments.fragments(tx.connection, g.session_id, "m"))


def test_words_without_a_secret_stream_as_they_are(tmp_path: Path) -> None:
    pieces = ["One ", "word", " then\n", "", "é\n\n", "token = get", "_token()"]
    with open_store(tmp_path) as store:
        assert store.write_now(lambda tx: streamed(tx, pieces)) == "".join(pieces)


@settings(max_examples=examples(25))
@given(text=st.text(st.characters(exclude_categories=())))
def test_what_is_masked_can_be_stored(text: str) -> None:
    clean = replace_surrogates(text)
    assert clean.encode() and len(clean) == len(text) if text else clean == ""
    assert replace_surrogates(clean) == clean
    assert mask(text) == mask(clean)
    assert mask_value({text: [text]}) == {mask(text): [mask(text)]}


def stored(store: Store, sql: str) -> Any:
    return store.read_now(lambda c: c.execute(sql).fetchone()[0])


@pytest.mark.parametrize("values", [("a\udcff",), {"t": "a\udcff"}])
def test_a_lone_surrogate_in_any_statement_is_replaced(store: Store, values: Any) -> None:
    mark = "?" if isinstance(values, tuple) else ":t"
    sql = f"INSERT INTO migrations VALUES ({mark}, 'c', 'x')"
    store.write_now(lambda tx: tx.execute(sql, values))
    assert stored(store, "SELECT name FROM migrations WHERE checksum='c'") == "a\ufffd"

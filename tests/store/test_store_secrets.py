"""A secret that is handed to any part of the store is nowhere in its files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from core.secret_canaries import canaries
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from store_world import CANARY, begin, open_store

from cockpit.core import secrets
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

SAID = f"use {CANARY} for it\nor password = {CANARY}"
TOLD: dict[str, Any] = {"text": SAID, "list": [SAID, {"deep": SAID}], SAID: 1, "token": CANARY}


class Ground:
    """A session with an open wave."""

    def __init__(self, tx: Tx) -> None:
        self.tx = tx
        self.session_id = begin(tx)
        self.wave = waves.create(tx, session_id=self.session_id, trace_id="t")
        self.place = {"session_id": self.session_id, "wave_id": self.wave.wave_id}


def session(g: Ground) -> None:
    begin(g.tx, title=SAID, words=SAID, target=TOLD, limits=TOLD, project=SAID, branch=SAID)
    sessions.change(g.tx, g.session_id, title=SAID, target=TOLD, limits=TOLD)
    events = {
        "waiting": SessionWaiting(for_=SAID, why=SAID),
        "failed": SessionFailed(message=SAID),
        "completed": SessionCompleted(status="done", summary=SAID),
    }
    for status, entered in events.items():
        sessions.set_status(g.tx, g.session_id, status, detail=entered, result=TOLD)


def event(g: Ground) -> None:
    for name, most in (("a", 5), ("b", 1)):
        made = events.ingest(g.tx, source=name, source_event_id=name, event_type="t", payload=TOLD)
        g.tx.execute("UPDATE events SET max_attempts=? WHERE event_id=?", (most, made))
        got = events.claim(g.tx, source=name, owner="o", lease_s=60)
        assert got is not None
        events.nack(g.tx, got.event_id, got.lease_token, SAID)


def wave(g: Ground) -> None:
    waves.advance(g.tx, g.wave.wave_id, "observing")
    waves.fail(g.tx, g.wave.wave_id, retryable=True, error_class="x", message=SAID)


def fact(g: Ground) -> None:
    made = make_fact(
        parse_item("search:" + CANARY),
        SAID,
        reference=SAID,
        outline=SAID,
        provenance=TOLD,
        key=CANARY,
    )
    facts.record(g.tx, ordinal=1, pinned_now=g.wave.pinned_now, facts=[made], **g.place)


def proposal(g: Ground) -> None:
    for verdict in ("approved", "rejected", "discussed"):
        body = {"items": [{"item": CANARY, "note": SAID}], **TOLD}
        made = proposals.create(
            g.tx, proposal_id=verdict, kind="context", title=SAID, body=body, risk="low", **g.place
        )
        kept = [made.body["items"][0]["item"]] if verdict == "approved" else None
        proposals.decide(g.tx, verdict, verdict, by="person", reason=SAID, narrowed=kept)


def request(g: Ground) -> None:
    for auto in (True, False):
        made = context_requests.create(
            g.tx, request_id=f"q-{auto}", call_id="", purpose=SAID, question=SAID, escalation=SAID,
            items=[{"item": CANARY, "note": SAID}], proposal_id=None, auto=auto, decided_by="x",
            **g.place,
        )  # fmt: skip
        context_requests.apply_decision(
            g.tx, made.request_id, "approved", approved=[CANARY], decided_by="x"
        )
        context_requests.record_fetched(
            g.tx, made.request_id, wave_id="w", outcomes=[{"item": CANARY, "error": SAID}]
        )


def message(g: Ground) -> None:
    messages.start(g.tx, message_id="m-1", **g.place)
    for number, text in enumerate((SAID, CANARY[:12], CANARY[12:], " after", *CANARY)):
        messages.append_delta(g.tx, message_id="m-1", text=text, number=number, **g.place)
    messages.start(g.tx, message_id="m-2", **g.place)
    messages.complete(g.tx, role="agent", text=SAID, message_id="m-2", **g.place)


def plan(g: Ground) -> None:
    calls = [{"name": "run", "title": SAID, "arguments": TOLD, "error": SAID, "key": "k"}]
    plans.commit(g.tx, text=SAID, calls=calls, stop="end", **g.place)


def action(g: Ground) -> None:
    def queued(key: str) -> str:
        made = outbox.plan(
            g.tx, position=1, key=key, action_type="run", title=SAID, payload=TOLD, **g.place
        )
        outbox.enqueue(g.tx, made.action_id, proposal_id=None, payload=TOLD)
        outbox.dispatch(g.tx, made.action_id, "o")
        return made.action_id

    outbox.confirm(g.tx, queued("a"), summary=SAID, detail=TOLD)
    outbox.fail(g.tx, queued("b"), status="failure", summary=SAID, detail=TOLD)
    outbox.fail(g.tx, queued("c"), status="timeout", summary=SAID, detail=TOLD, retry_in_s=1)
    outbox.mark_uncertain(g.tx, queued("d"), SAID)
    outbox.record_probe(g.tx, queued("e"), SAID)
    dropped = outbox.plan(
        g.tx, position=1, key="f", action_type="run", title=SAID, payload=TOLD, **g.place
    )
    outbox.drop(g.tx, dropped.action_id, SAID)


def row(g: Ground) -> None:
    for kind in Action:
        if kind is not Action.MESSAGE_DELTA:
            g.tx.append_row(kind, body={**TOLD, "message_id": "m-9"})


mask_each_text_once = lru_cache(maxsize=1_000)(secrets._mask_once)
ENTRIES = (session, event, wave, fact, proposal, request, message, plan, action, row)


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_entry_lets_a_secret_into_the_files(
    tmp_path: Path, entry: Callable[[Ground], None]
) -> None:
    with open_store(tmp_path, clock=FixedClock()) as store:
        store.write_now(lambda tx: entry(Ground(tx)))
        files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        names = {"cockpit.db", "cockpit.db-wal", "cockpit.db-shm", "cockpit.db-queue"}
        assert set(files) == names
        assert store.read_now(verify_chain.verify).ok
    files["after closing"] = (tmp_path / "cockpit.db").read_bytes()
    assert b"[masked:" in files["after closing"], "the entry stored nothing of what it was given"
    for name, content in files.items():
        assert CANARY.encode() not in content, name
        assert CANARY.encode("utf-16-le") not in content, name


@pytest.mark.parametrize("entry", ENTRIES[:-1])
def test_no_entry_lets_a_secret_of_any_rule_into_the_files(
    tmp_path: Path, entry: Callable[[Ground], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "\n".join(text for text, _ in canaries().values())
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "SAID", lines)
    monkeypatch.setattr(module, "TOLD", {"text": lines, "list": [lines]})
    # Some texts, masked by all entries many times: 200 secrets take 30 ms each time.
    monkeypatch.setattr(secrets, "_mask_once", mask_each_text_once)
    with open_store(tmp_path, clock=FixedClock()) as store:
        store.write_now(lambda tx: entry(Ground(tx)))
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"[masked:" in content
    assert [name for name, (_, secret) in canaries().items() if secret.encode() in content] == []


@settings(max_examples=examples(20), deadline=None, derandomize=True, database=None)
@given(cuts=st.lists(st.integers(1, 90), max_size=8), lead=st.sampled_from(["", "a\nb ", "say: "]))
def test_a_secret_in_pieces_is_never_whole(
    cuts: list[int], lead: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
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


@given(text=st.text(st.characters(exclude_categories=())))
@settings(derandomize=True, database=None)
def test_what_is_masked_can_be_stored(text: str) -> None:
    clean = replace_surrogates(text)
    assert clean.encode() and len(clean) == len(text) if text else clean == ""
    assert replace_surrogates(clean) == clean
    assert mask(text) == mask(clean)
    assert mask_value({text: [text]}) == {mask(text): [mask(text)]}


def stored(store: Store, sql: str) -> Any:
    return store.read_now(lambda c: c.execute(sql).fetchone()[0])


@pytest.mark.parametrize("values", [("a\udcff",), {"t": "a\udcff"}])
def test_a_lone_surrogate_in_any_statement_is_replaced(tmp_path: Path, values: Any) -> None:
    with open_store(tmp_path) as store:
        mark = "?" if isinstance(values, tuple) else ":t"
        sql = f"INSERT INTO migrations VALUES ({mark}, 'c', 'x')"
        store.write_now(lambda tx: tx.execute(sql, values))
        assert stored(store, "SELECT name FROM migrations WHERE checksum='c'") == "a\ufffd"

"""Facts: one id for one content anywhere, stored once, and a past wave's answer never changes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from store.store_world import begin, open_store

from cockpit.core.canonical_json import digest, text_digest
from cockpit.store.context import facts
from cockpit.store.context.candidates import load_candidates
from cockpit.store.context.facts import Fact, Level, SessionFact, compute_fact_id
from cockpit.store.db.database import Store

pytestmark = pytest.mark.slow


_TEXT = st.text(st.characters(), max_size=20)
_SCALARS = st.none() | st.booleans() | st.integers() | _TEXT
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner), max_leaves=8
)


@settings(max_examples=examples(15))
@given(_TEXT, _TEXT, st.dictionaries(_TEXT, _VALUES, max_size=4))
@example("file:a.py", "é\n\ud800", {"b": 1, "a": [1, {"y": None, "x": "z"}]})
def test_an_id_is_that_of_the_canonical_json(ref, text, provenance):
    """Nothing of the process is in it: facts of other stores and versions have the same."""
    body = ["file", ref, text_digest(text), provenance]
    assert compute_fact_id("file", ref, text, provenance) == f"f-{digest(body)[:24]}"


def test_an_id_stays_what_it_was_and_another_source_or_content_has_another() -> None:
    provenance = {"b": 1, "a": [1, {"y": None, "x": "z"}]}
    known = ("file", "file:a.py", "é\n\ud800", provenance)
    assert compute_fact_id(*known) == "f-4f0e40f3080ea2712744d125"
    others = ("diff", "file:b", "b", {})
    ids = {compute_fact_id(*known[:at], others[at], *known[at + 1 :]) for at in range(4)}
    assert len(ids | {compute_fact_id(*known)}) == 5


def made(text: str, *, key: str = "", ref: str = "file:a", **words: Any) -> Fact:
    return Fact("file", ref, "situational", Level(text, 3), Level("r", 1), dedupe_key=key, **words)


def look(store: Store, session_id: str, ordinal: int, *found: Fact, job: str = "") -> int:
    return store.write_now(
        lambda tx: facts.record(
            tx,
            session_id=session_id,
            wave_id=f"{session_id}-w{ordinal}",
            ordinal=ordinal,
            pinned_now="2026-01-01T00:00:00.000000Z",
            facts=found,
            job=job,
        )
    )


def linked(store: Store, session_id: str, ordinal: int) -> list[SessionFact]:
    return store.read_now(lambda c: facts.select_linked(c, session_id, ordinal))


def live(store: Store, session_id: str, ordinal: int) -> list[str]:
    ids = [one.fact_id for one in linked(store, session_id, ordinal) if not one.superseded]
    words = store.read_now(lambda c: facts.load_texts(c, ids))
    return [words[identity].full for identity in ids]


def test_content_is_stored_once_for_all_sessions(store: Store) -> None:
    one, two = store.write_now(lambda tx: (begin(tx), begin(tx)))
    assert look(store, one, 1, made("a"), made("a"), made("b")) == 2
    assert look(store, one, 2, made("a")) == 0
    assert look(store, two, 1, made("a")) == 1
    count = "SELECT count(*) FROM observed_facts"
    assert store.read_now(lambda c: c.execute(count).fetchone()) == (2,)


def test_a_newer_look_replaces_what_it_did_not_find_again(store: Store) -> None:
    session_id = store.write_now(begin)
    look(store, session_id, 1, made("one", key="k"), made("two", key="k"), made("x", key="l"))
    look(store, session_id, 2, made("one", key="k"), made("TWO", key="k"))
    assert live(store, session_id, 2) == ["one", "x", "TWO"]
    look(store, session_id, 3, made("one", key="k"))
    assert live(store, session_id, 3) == ["one", "x"]
    look(store, session_id, 3, made("three", key="k"))
    assert live(store, session_id, 3) == ["x", "three"]


def test_lone_surrogates_are_replaced_before_the_id_is_made(store: Store) -> None:
    session_id = store.write_now(begin)
    raw, clean = (
        made(f"a{c}", ref=f"file:{c}", key=c, outline=Level(c, 1), provenance={"path": c})
        for c in ("\udcff", "\ufffd")
    )
    assert look(store, session_id, 1, raw) == 1
    assert look(store, session_id, 2, clean) == 0
    assert [one.fact_id for one in linked(store, session_id, 2)] == [clean.fact_id]


SEEN = st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "k", "l"]), st.booleans())
LOOKS = st.lists(st.tuples(st.booleans(), st.lists(SEEN, max_size=4)), max_size=8)


@pytest.mark.search
@settings(max_examples=examples(8), deadline=None, database=None)
@given(looks=LOOKS)
def test_the_answer_for_a_past_wave_never_changes(looks):
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder)) as store:
        session_id = store.write_now(begin)
        answers: dict[int, Any] = {}
        ordinal = 1
        for next_wave, found in looks:
            if next_wave:
                answers[ordinal] = answer(store, session_id, ordinal)
                ordinal += 1
            seen = (made(text, key=key, ref=f"file:{key}", pinned=pin) for text, key, pin in found)
            look(store, session_id, ordinal, *seen)
            for past, said in answers.items():
                assert answer(store, session_id, past) == said
            known = [
                one.fact_id for one in linked(store, session_id, ordinal) if not one.superseded
            ]
            assert len(known) == len(set(known))


def answer(store: Store, session_id: str, ordinal: int) -> Any:
    return linked(store, session_id, ordinal), store.read_now(
        lambda c: load_candidates(c, session_id, ordinal)
    )

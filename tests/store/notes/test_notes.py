"""Notes in the store: proposed once, kept by the user alone, contradicted, forgotten, taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from store.store_world import CANARY, begin

from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.store.db.database import Store
from cockpit.store.notes import notes
from cockpit.store.notes.notes import LONGEST, Note, NoteDraft, NoteInvalid

MAKE = NoteDraft("command", "make test", "`make test` runs tests.", "a command that ran tests")


def propose(store: Store, draft: NoteDraft = MAKE, session: str | None = None) -> Note | None:
    def step(tx):  # type: ignore[no-untyped-def]
        return notes.propose(tx, draft, session_id=session or begin(tx), task_type="bug")

    return store.write_now(step)


def test_the_same_lesson_is_one_note_and_counts_once_for_a_session(store: Store) -> None:
    first = propose(store)
    assert first is not None
    assert propose(store, session=first.session_id) is None
    again = propose(store)
    assert again is not None
    assert (again.note_id, again.seen, again.status) == (first.note_id, 2, "proposed")
    assert len(store.read_now(notes.select)) == 1


def test_the_users_own_note_and_a_sessions_lesson_are_one(store: Store) -> None:
    """However it is written: in capitals, with other spaces, with a point at its end."""
    own = store.write_now(lambda tx: notes.write(tx, "decision", "Prices are  in cents."))
    for text in ("prices are in cents", "PRICES are in\n cents!"):
        with pytest.raises(NoteInvalid, match=f"Note {own.note_id} says the same"):
            store.write_now(lambda tx, text=text: notes.write(tx, "decision", text))
    taught = propose(
        store, NoteDraft("decision", "prices are in cents", "Prices are in cents", "x")
    )
    assert taught is not None
    assert (taught.note_id, taught.seen, taught.status) == (own.note_id, 2, "kept")
    assert store.write_now(lambda tx: notes.write(tx, "command", "Make x")).subject == "Make x"
    assert store.write_now(lambda tx: notes.write(tx, "command", "make x")).subject == "make x"


def test_questions_are_closed_however_many_notes_there_are(store: Store) -> None:
    session = store.write_now(begin)
    asked = propose(store, NoteDraft("question", "why?", "Why?", "x"), session)
    assert asked is not None

    def fill(tx) -> None:  # type: ignore[no-untyped-def]
        for number in range(600):
            notes.write(tx, "decision", f"Decision number {number} of many")

    store.write_now(fill)
    questions = store.read_now(lambda c: notes.select_open_questions(c, session, None))
    assert [note.note_id for note in questions] == [asked.note_id]
    assert store.read_now(lambda c: notes.select_open_questions(c, "s-other", None)) == []


def test_what_the_user_forgot_is_not_proposed_again_but_can_be_taken_back(store: Store) -> None:
    note = propose(store)
    assert note is not None
    store.write_now(lambda tx: notes.forget(tx, note.note_id, "wrong"))
    assert propose(store) is None
    assert store.write_now(lambda tx: notes.keep(tx, note.note_id)).status == "kept"
    seen = propose(store)
    assert seen is not None
    assert (seen.note_id, seen.seen) == (note.note_id, 2)


def test_a_kept_note_is_forgotten_when_it_is_contradicted_twice(store: Store) -> None:
    note = propose(store)
    assert note is not None
    kept = store.write_now(lambda tx: notes.keep(tx, note.note_id))
    session = store.write_now(begin)
    doubted = store.write_now(
        lambda tx: notes.contradict(tx, kept, "it failed: boom", session_id=session)
    )
    assert (doubted.status, doubted.contradicted) == ("kept", 1)
    gone = store.write_now(
        lambda tx: notes.contradict(tx, doubted, "it failed: boom", session_id=session)
    )
    assert (gone.status, gone.reason) == ("forgotten", "it failed: boom")
    learned = propose(store)  # not the user's own judgement, so it may be learned anew
    assert learned is not None
    assert learned.note_id != note.note_id
    with pytest.raises(IllegalTransition, match="says the same already"):
        store.write_now(lambda tx: notes.keep(tx, note.note_id))


def test_a_note_of_the_user_is_kept_at_once_and_edited(store: Store) -> None:
    note = store.write_now(lambda tx: notes.write(tx, "decision", " Rates\x1b[31m are in cents "))
    assert (note.text, note.status, note.session_id) == ("Rates[31m are in cents", "kept", "")
    edited = store.write_now(lambda tx: notes.edit(tx, note.note_id, "Rates are in cents"))
    assert edited.text == "Rates are in cents"
    for kind, text in (("joke", "x"), ("decision", " "), ("decision", "x" * (LONGEST + 1))):
        with pytest.raises(NoteInvalid):
            store.write_now(lambda tx, kind=kind, text=text: notes.write(tx, kind, text))
    with pytest.raises(NotFound, match="cockpit notes"):
        store.write_now(lambda tx: notes.forget(tx, "n-none"))


def test_a_merged_note_is_forgotten_and_its_sessions_count_for_the_other(store: Store) -> None:
    into = store.write_now(lambda tx: notes.write(tx, MAKE.kind, "just test"))
    taught = propose(store)
    assert taught is not None
    merged = store.write_now(lambda tx: notes.merge(tx, taught.note_id, into.note_id))
    assert (merged.text, merged.status, merged.seen) == ("just test", "kept", 2)
    gone = store.read_now(lambda connection: notes.load(connection, taught.note_id))
    assert (gone.status, gone.reason) == ("forgotten", f"merged into {into.note_id}")
    other = store.write_now(lambda tx: notes.write(tx, "decision", "cents"))
    for first, second in ((into, into), (other, into)):
        with pytest.raises(NoteInvalid):
            store.write_now(lambda tx, a=first, b=second: notes.merge(tx, a.note_id, b.note_id))
    with pytest.raises(IllegalTransition, match="Keep it first"):
        store.write_now(lambda tx: notes.merge(tx, taught.note_id, into.note_id))


def test_secrets_are_masked_and_every_row_is_sealed(store: Store, tmp_path: Path) -> None:
    draft = NoteDraft("decision", f"use {CANARY}", f"use {CANARY}", f"words {CANARY}")
    assert propose(store, draft) is not None
    store.write_now(lambda tx: notes.write(tx, "pitfall", f"never {CANARY}"))
    assert CANARY.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("cockpit*"))

"""Waves: no phase is skipped, what ended stays ended, and what was refused changed nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from store.store_world import begin, open_store

from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import sessions, waves
from cockpit.store.sessions.waves import FAILED, PHASES, Wave

ALL = (*PHASES, *FAILED)
NEXT = dict(pairwise(PHASES))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(tmp_path_factory.mktemp("waves")) as made:
        yield made


def brought_to(tx: Tx, phase: str) -> Wave:
    wave = waves.create(tx, session_id=begin(tx), trace_id="t")
    if phase in FAILED:
        waves.advance(tx, wave.wave_id, "observing")
        retryable = phase == "failed_retryable"
        return waves.fail(tx, wave.wave_id, retryable=retryable, error_class="x", message="m")
    for name in PHASES[1 : PHASES.index(phase) + 1]:
        wave = waves.advance(tx, wave.wave_id, name)
    return wave


def state(store: Store) -> tuple[object, ...]:
    return store.read_now(
        lambda c: (
            c.execute("SELECT * FROM wave_runs ORDER BY wave_id").fetchall(),
            journal.last_seq(c),
        )
    )


@pytest.mark.parametrize("there", ALL)
def test_every_pair_of_phases(store: Store, there: str) -> None:
    for wanted in (*ALL, "", "nowhere"):
        advance(store, there, wanted)


def advance(store: Store, there: str, wanted: str) -> None:
    wave = store.write_now(lambda tx: brought_to(tx, there))
    before = state(store)
    if NEXT.get(there) == wanted:
        moved = store.write_now(lambda tx: waves.advance(tx, wave.wave_id, wanted))
        assert moved.phase == wanted
        row = store.read_now(lambda c: journal.rows(c, after=before[1]))[0]
        assert (row.wave_id, row.raw_detail()["phase"]) == (wave.wave_id, wanted)
        return
    with pytest.raises(IllegalTransition):
        store.write_now(lambda tx: waves.advance(tx, wave.wave_id, wanted))
    assert state(store) == before


@pytest.mark.parametrize("there", ALL)
def test_only_an_open_wave_fails_a_failed_one_reenters_and_an_ended_one_has_a_next(store, there):
    def fail(tx: Tx, wave: Wave, retryable: bool) -> Wave:
        return waves.fail(tx, wave.wave_id, retryable=retryable, error_class="x", message="m")

    steps: dict[str, tuple[Callable[[Tx, Wave], Wave], bool]] = {
        "failed_retryable": (lambda tx, wave: fail(tx, wave, True), there in PHASES[:-1]),
        "failed_terminal": (lambda tx, wave: fail(tx, wave, False), there in PHASES[:-1]),
        "observing": (
            lambda tx, wave: waves.reenter(tx, wave.wave_id),
            there == "failed_retryable",
        ),
        "created": (
            lambda tx, wave: waves.create(tx, session_id=wave.session_id, trace_id="t"),
            there in ("completed", "failed_terminal"),
        ),
    }
    for phase, (step, allowed) in steps.items():
        wave = store.write_now(lambda tx: brought_to(tx, there))
        before = state(store)
        if not allowed:
            with pytest.raises(IllegalTransition):
                store.write_now(lambda tx, s=step, w=wave: s(tx, w))
            assert state(store) == before
            continue
        after = store.write_now(lambda tx, s=step, w=wave: s(tx, w))
        assert (after.phase, after.ordinal) == (phase, 2 if phase == "created" else 1)
        assert after.reentry_phase == (there if phase == "failed_retryable" else None)
        if after.reentry_phase:
            again = store.write_now(lambda tx, w=after: waves.reenter(tx, w.wave_id))
            assert (again.phase, again.reentry_phase) == (there, None)


def test_what_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(NotFound, match="w-none"):
        store.write_now(lambda tx: waves.advance(tx, "w-none", "observing"))


def new_wave(tx: Tx) -> waves.Wave:
    return waves.create(tx, session_id=begin(tx), trace_id="t")


def journal_row(tx: Tx) -> int:
    return tx.append_row(Action.SESSION_RUNNING)


def test_a_step_that_fails_inside_a_write_takes_its_journal_rows_with_it(store: Store) -> None:
    wave = store.write_now(new_wave)

    def fail(tx: Tx) -> None:
        journal_row(tx)
        waves.advance(tx, wave.wave_id, "observing")
        raise KeyError("no")

    def write(tx: Tx) -> None:
        journal_row(tx)
        with pytest.raises(KeyError):
            tx.attempt(lambda: fail(tx))
        journal_row(tx)
        waves.advance(tx, wave.wave_id, "observing")

    store.write_now(write)
    assert store.read_now(verify_chain.verify).ok


def test_the_trace_follows_the_session_and_its_waves(store: Store) -> None:
    def write(tx: Tx) -> None:
        session_id = begin(tx)
        tx.append_row(Action.SESSION_RUNNING, session_id=session_id)
        first = waves.create(tx, session_id=session_id, trace_id="t")
        waves.advance(tx, first.wave_id, "observing", profile_version=3)
        tx.append_row(Action.SESSION_RUNNING, session_id=session_id)
        sessions.set_profile(tx, session_id, "wide")
        tx.append_row(Action.SESSION_RUNNING, session_id=session_id)

    after = store.read_now(journal.last_seq)
    store.write_now(write)
    rows = store.read_now(lambda c: journal.rows(c, after=after))
    rows = [row for row in rows if row.action == str(Action.SESSION_RUNNING)]
    assert [row.profile_version for row in rows] == [None, 3, 3]
    assert rows[-1].profile_id == "wide"

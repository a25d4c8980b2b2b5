"""Waves: no phase is skipped, what ended stays ended, and what was refused changed nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from examples import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from store_world import begin, open_store

from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal, verify_chain
from cockpit.store.sessions import waves
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
@pytest.mark.parametrize("wanted", [*ALL, "", "nowhere"])
def test_every_pair_of_phases(store: Store, there: str, wanted: str) -> None:
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
@pytest.mark.parametrize("retryable", [True, False])
def test_every_phase_can_fail_until_it_ended(store: Store, there: str, retryable: bool) -> None:
    wave = store.write_now(lambda tx: brought_to(tx, there))
    before = state(store)

    def fail(tx: Tx) -> Wave:
        return waves.fail(tx, wave.wave_id, retryable=retryable, error_class="x", message="m")

    if there in (*FAILED, "completed"):
        with pytest.raises(IllegalTransition):
            store.write_now(fail)
        assert state(store) == before
        return
    failed = store.write_now(fail)
    assert failed.phase == FAILED[0 if retryable else 1]
    assert failed.reentry_phase == (there if retryable else None)


@pytest.mark.parametrize("there", ALL)
def test_only_a_retryable_failure_is_taken_up_again(store: Store, there: str) -> None:
    wave = store.write_now(lambda tx: brought_to(tx, there))
    before = state(store)
    if there == "failed_retryable":
        again = store.write_now(lambda tx: waves.reenter(tx, wave.wave_id))
        assert (again.phase, again.reentry_phase) == ("observing", None)
        return
    with pytest.raises(IllegalTransition):
        store.write_now(lambda tx: waves.reenter(tx, wave.wave_id))
    assert state(store) == before


@pytest.mark.parametrize("there", ALL)
def test_the_next_wave_waits_for_the_end_of_the_last(store: Store, there: str) -> None:
    wave = store.write_now(lambda tx: brought_to(tx, there))
    before = state(store)

    def following(tx: Tx) -> Wave:
        return waves.create(tx, session_id=wave.session_id, trace_id="t")

    if there in ("completed", "failed_terminal"):
        assert store.write_now(following).ordinal == 2
        return
    with pytest.raises(IllegalTransition):
        store.write_now(following)
    assert state(store) == before


def test_what_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(NotFound, match="w-none"):
        store.write_now(lambda tx: waves.advance(tx, "w-none", "observing"))


class Life(RuleBasedStateMachine):
    """One session's waves against a model of three lines."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = open_store(Path(self.folder.name))
        self.session_id = self.store.write_now(begin)
        self.phases: list[str] = []
        self.reentry = ""

    def act(self, step: Callable[[Tx], Wave], allowed: bool) -> None:
        try:
            self.store.write_now(step)
        except IllegalTransition:
            assert not allowed
        else:
            assert allowed

    @rule()
    def create(self) -> None:
        allowed = not self.phases or self.phases[-1] in ("completed", "failed_terminal")
        self.act(lambda tx: waves.create(tx, session_id=self.session_id, trace_id="t"), allowed)
        if allowed:
            self.phases.append("created")

    @precondition(lambda self: self.phases)
    @rule(phase=st.sampled_from(ALL))
    def advance(self, phase: str) -> None:
        self.to(phase)

    @precondition(lambda self: self.phases)
    @rule()
    def go_on(self) -> None:
        self.to(NEXT.get(self.phases[-1], "completed"))

    def to(self, phase: str) -> None:
        allowed = NEXT.get(self.phases[-1]) == phase
        self.act(lambda tx: waves.advance(tx, self.wave_id, phase), allowed)
        if allowed:
            self.phases[-1] = phase

    @precondition(lambda self: self.phases)
    @rule(retryable=st.booleans())
    def fail(self, retryable: bool) -> None:
        there = self.phases[-1]
        allowed = there not in (*FAILED, "completed")
        self.act(
            lambda tx: waves.fail(
                tx, self.wave_id, retryable=retryable, error_class="x", message="m"
            ),
            allowed,
        )
        if allowed:
            self.phases[-1] = FAILED[0 if retryable else 1]
            self.reentry = there

    @precondition(lambda self: self.phases)
    @rule()
    def reenter(self) -> None:
        allowed = self.phases[-1] == "failed_retryable"
        self.act(lambda tx: waves.reenter(tx, self.wave_id), allowed)
        if allowed:
            self.phases[-1] = self.reentry

    @property
    def wave_id(self) -> str:
        return f"{self.session_id}-w{len(self.phases)}"

    @invariant()
    def the_store_says_the_same(self) -> None:
        if hasattr(self, "store"):
            found = self.store.read_now(lambda c: waves.select_for_session(c, self.session_id))
            assert [wave.phase for wave in found] == self.phases
            assert [wave.ordinal for wave in found] == list(range(1, len(found) + 1))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            assert self.store.read_now(verify_chain.verify).ok
            self.store.close()
            self.folder.cleanup()


Life.TestCase.settings = settings(
    max_examples=examples(10),
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
)
test_any_life_of_a_session = Life.TestCase

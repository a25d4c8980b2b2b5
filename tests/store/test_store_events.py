"""Events: ingested once, leased by one, acked or dead-lettered and never both."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from examples import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from store.store_world import open_store

from cockpit.core.clock import FixedClock
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import verify_chain
from cockpit.store.sessions import events
from cockpit.store.sessions.events import BACKOFF_S, Event

LEASE_S = 60.0


def put(tx: Tx, name: str, tier: int = 1) -> str:
    return events.ingest(
        tx, source="s", source_event_id=name, event_type="t", payload={"n": name}, tier=tier
    )


def take(tx: Tx, owner: str = "o") -> list[Event]:
    return events.claim_waiting(tx, events.select_waiting(tx, "s"), owner=owner, lease_s=LEASE_S)


def test_the_same_event_is_stored_once(store: Store) -> None:
    assert store.write_now(lambda tx: put(tx, "a")) == store.write_now(lambda tx: put(tx, "a"))
    assert store.read_now(lambda c: events.count_waiting(c, "s")) == 1


def test_lower_tiers_first_then_the_oldest(tmp_path: Path) -> None:
    with open_store(tmp_path, clock=FixedClock(step_s=0.001)) as store:
        for name, tier in (("late", 3), ("b", 1), ("c", 1), ("urgent", 0)):
            store.write_now(lambda tx, name=name, tier=tier: put(tx, name, tier))
        taken = [event.payload["n"] for event in store.write_now(take)]
        assert taken == ["urgent", "b", "c", "late"]
        assert store.write_now(take) == []


def test_more_than_are_read_at_once_are_taken_each_once(store: Store) -> None:
    for number in range(201):
        store.write_now(lambda tx, name=str(number): put(tx, name))
    assert len({event.event_id for event in store.write_now(take)}) == 201


def test_what_came_before_the_clock_was_set_back_is_taken_at_once(tmp_path: Path) -> None:
    """Else a message that came afterwards would begin the session in the place of its task."""
    clock = FixedClock()
    with open_store(tmp_path, clock=clock) as store:
        store.write_now(lambda tx: put(tx, "task"))
        clock.advance(-86_400)
        store.write_now(lambda tx: put(tx, "message"))
        taken = store.write_now(take)
        assert {event.payload["n"] for event in taken} == {"task", "message"}


class Life(RuleBasedStateMachine):
    """One event among claims, acks, nacks and passing time, against a model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FixedClock()
        self.store: Store = open_store(Path(self.folder.name), clock=self.clock)
        self.event_id = self.store.write_now(lambda tx: put(tx, "a"))
        self.owners = 0
        """How many have claimed it; the last of them may settle it."""
        self.held_until = -1.0
        self.is_held = False
        self.rests_until = 0.0
        self.attempts = 0
        self.end = ""

    @property
    def is_leased(self) -> bool:
        return self.is_held and self.held_until > self.clock.monotonic()

    @rule()
    def claim(self) -> None:
        free = not (self.end or self.is_leased) and self.rests_until <= self.clock.monotonic()
        found = self.store.write_now(lambda tx: take(tx, f"o{self.owners + 1}"))
        if free and self.attempts == 5:
            assert found == []
            self.end = "dead"
            return
        assert len(found) == int(free)
        if found:
            self.attempts += 1
            assert found[0].attempts == self.attempts
            self.owners += 1
            self.is_held = True
            self.held_until = self.clock.monotonic() + LEASE_S

    @rule(which=st.integers(0, 5), ack=st.booleans())
    def settle(self, which: int, ack: bool) -> None:
        """Also one whose lease ran out, so long as nobody else took it."""
        owner = f"o{self.owners - which}"
        allowed = self.is_held and not self.end and which == 0
        if ack:
            self.store.write_now(lambda tx: events.ack_owned(tx, owner))
        else:
            self.store.write_now(lambda tx: events.nack_owned(tx, owner, "no"))
        if not allowed:
            return
        self.is_held = False
        if ack:
            self.end = "acked"
        elif self.attempts == 5:
            self.end = "dead"
        else:
            self.rests_until = self.clock.monotonic() + BACKOFF_S[self.attempts - 1]

    @precondition(lambda self: not self.end)
    @rule(seconds=st.sampled_from([0.5, 1, 5, 59, 60, 600]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def the_store_says_the_same(self) -> None:
        acked, dead, token = self.store.read_now(
            lambda c: c.execute(
                "SELECT acked_at, dead_letter_at, lease_token FROM events"
            ).fetchone()
        )
        said = "acked" if acked else "dead" if dead else ""
        assert said == self.end
        assert not (acked and dead)
        assert not (self.end and token)
        assert self.store.read_now(lambda c: events.count_waiting(c, "s")) == int(not self.end)

    def teardown(self) -> None:
        assert self.store.read_now(verify_chain.verify).ok
        self.store.close()
        self.folder.cleanup()


Life.TestCase.pytestmark = [pytest.mark.search]  # type: ignore[attr-defined]
Life.TestCase.settings = settings(
    max_examples=examples(6), stateful_step_count=20, deadline=None, database=None
)
test_any_life_of_an_event = Life.TestCase

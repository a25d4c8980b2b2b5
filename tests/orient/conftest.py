"""A real store with one session and its waves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from cockpit.orient.columns import read
from cockpit.orient.compile import compile_packet
from cockpit.store import facts, packets, profiles, sessions, waves
from cockpit.store.clock import CountingIds, FixedClock
from cockpit.store.database import Store, Tx
from cockpit.store.facts import Fact


@dataclass
class World:
    """A store and its session; :meth:`wave` runs one wave as far as its packet."""

    store: Store
    session_id: str
    profile: profiles.Profile

    def wave(self, seen: Sequence[Fact]) -> str:
        def observe(tx: Tx) -> str:
            wave = waves.create(tx, session_id=self.session_id, trace_id="t-1")
            facts.record(
                tx,
                session_id=self.session_id,
                wave_id=wave.wave_id,
                ordinal=wave.ordinal,
                pinned_now=wave.pinned_now,
                facts=seen,
            )
            return wave.wave_id

        def orient(tx: Tx) -> None:
            wave = waves.load(tx.connection, wave_id)
            packet = compile_packet(
                read(tx.connection, self.session_id, wave.ordinal), self.profile, wave.ordinal
            )
            packets.insert(
                tx,
                wave_id,
                packet,
                pinned_now=wave.pinned_now,
                session_id=self.session_id,
                trace_id=wave.trace_id,
            )
            for phase in waves.PHASES[1:]:
                waves.advance(tx, wave_id, phase)

        wave_id = self.store.write_now(observe)
        self.store.write_now(orient)
        return wave_id


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with Store.open(tmp_path / "cockpit.db", FixedClock(step_s=1.0), CountingIds()) as store:

        def begin(tx: Tx) -> World:
            profile = profiles.ensure_default(tx, 150_000)
            session = sessions.create(
                tx,
                task_type="implement",
                title="a title",
                words="do it",
                target={},
                model="offline",
                policy="ask",
                interactive=False,
                root=tmp_path,
                rev=None,
                profile_id=profile.profile_id,
                limits={},
                project="made",
                branch="main",
            )
            return World(store, session.session_id, profile)

        yield store.write_now(begin)

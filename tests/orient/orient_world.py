"""A session in a real store, whose waves go through Observe and Orient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cockpit.orient.compile_packet import compile_packet
from cockpit.orient.fact_columns import load_columns
from cockpit.store.context import facts, packets, profiles
from cockpit.store.context.facts import Fact
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import waves


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
                tx, session_id=self.session_id, wave_id=wave.wave_id, ordinal=wave.ordinal,
                pinned_now=wave.pinned_now, facts=seen,
            )  # fmt: skip
            return wave.wave_id

        def orient(tx: Tx) -> None:
            wave = waves.load(tx.connection, wave_id)
            columns = load_columns(tx.connection, self.session_id, wave.ordinal)
            packet = compile_packet(columns, self.profile, wave.ordinal)
            place = {"session_id": self.session_id, "trace_id": wave.trace_id}
            packets.insert(tx, wave_id, packet, pinned_now=wave.pinned_now, **place)
            for phase in waves.PHASES[1:]:
                waves.advance(tx, wave_id, phase)

        wave_id = self.store.write_now(observe)
        self.store.write_now(orient)
        return wave_id

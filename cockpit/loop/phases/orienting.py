"""Orient: the compiled packet of one wave, once.

Crash before the packet row: it is compiled again, to the same digest. After it: this is skipped.
Source: RFC-003 §10.2, §15.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from cockpit.loop.wave_context import Here
from cockpit.store.context import packets, profiles
from cockpit.store.context.packets import Packet
from cockpit.store.context.profile_model import Profile
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import WaveOriented
from cockpit.store.sessions import waves
from cockpit.store.sessions.waves import Wave


@dataclass(frozen=True, slots=True)
class Oriented:
    """A compiled packet. ``keep`` stores it and takes the wave from ``orienting`` to ``deciding``;
    it is Decide's to run, with the first thing it writes."""

    packet: Packet
    keep: Callable[[Tx], Wave]


async def orient(here: Here) -> Oriented:
    """Compile the wave's packet.

    Raises ``PinnedOverBudget`` when what is pinned alone is too much.
    """
    started = here.store.clock.monotonic()
    packet = await asyncio.to_thread(_compiled, here)
    latency = round((here.store.clock.monotonic() - started) * 1000)
    return Oriented(packet, lambda tx: _keep(tx, here, packet, latency))


def _profile(connection: sqlite3.Connection, here: Here) -> Profile:
    """The version that was pinned when the wave began."""
    version = here.wave.profile_version
    if version is None:
        return profiles.load_current(connection, here.session.profile_id)
    return profiles.load(connection, here.session.profile_id, version)


def _compiled(here: Here) -> Packet:
    from cockpit.orient.compile_packet import compile_packet
    from cockpit.orient.fact_arrays import Columns, read

    def look(connection: sqlite3.Connection) -> Packet | tuple[Profile, Columns]:
        stored = packets.find(connection, here.wave.wave_id)
        if stored is not None:
            return stored.packet
        columns = read(connection, here.session.session_id, here.wave.ordinal)
        return _profile(connection, here), columns

    found = here.store.read_now(look)
    if isinstance(found, Packet):
        return found
    profile, columns = found
    return compile_packet(columns, profile, here.wave.ordinal)


def _keep(tx: Tx, here: Here, packet: Packet, latency: int) -> Wave:
    identity = packets.insert(
        tx,
        here.wave.wave_id,
        packet,
        pinned_now=here.wave.pinned_now,
        session_id=here.session.session_id,
        trace_id=here.session.trace_id,
        latency_ms=latency,
    )
    return waves.advance(
        tx,
        here.wave.wave_id,
        "deciding",
        packet_id=identity,
        profile_version=packet.profile_version,
        detail=WaveOriented(packet_id=identity, digest=packet.digest),
    )

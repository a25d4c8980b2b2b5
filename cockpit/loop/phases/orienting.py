"""Orient: compile the wave's packet, once.

After a crash before the packet is stored it is compiled again, to the same digest; after that this phase
is skipped. See ``docs/reference/kernel.md``, compiler.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from cockpit.loop.wave_context import WaveContext
from cockpit.store.context import packets, profiles
from cockpit.store.context.packets import Packet
from cockpit.store.context.profile_model import Profile
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import WaveOriented
from cockpit.store.sessions import waves
from cockpit.store.sessions.waves import Wave


@dataclass(frozen=True, slots=True)
class CompiledPacket:
    """A packet that is not stored yet."""

    packet: Packet
    store: Callable[[Tx], Wave]
    """Stores the packet and takes the wave to ``deciding``; Decide runs it with its first write."""


async def orient(context: WaveContext) -> CompiledPacket:
    """Compile the wave's packet.

    Raises ``PinnedOverBudget`` when the pinned facts alone exceed the token budget.
    """
    started = context.store.clock.monotonic()
    packet = await asyncio.to_thread(_compile, context)
    latency_ms = round((context.store.clock.monotonic() - started) * 1000)
    return CompiledPacket(packet, lambda tx: _store_packet(tx, context, packet, latency_ms))


def load_pinned_profile(connection: sqlite3.Connection, context: WaveContext) -> Profile:
    """Return the profile version that was pinned when the wave began."""
    version = context.wave.profile_version
    if version is None:
        return profiles.load_current(connection, context.session.profile_id)
    return profiles.load(connection, context.session.profile_id, version)


def _compile(context: WaveContext) -> Packet:
    from cockpit.orient.compile_packet import compile_packet
    from cockpit.orient.fact_columns import FactColumns, load_columns

    def read_inputs(connection: sqlite3.Connection) -> Packet | tuple[Profile, FactColumns]:
        stored = packets.find(connection, context.wave.wave_id)
        if stored is not None:
            return stored.packet
        columns = load_columns(connection, context.session.session_id, context.wave.ordinal)
        return load_pinned_profile(connection, context), columns

    inputs = context.store.read_now(read_inputs)
    if isinstance(inputs, Packet):
        return inputs
    profile, columns = inputs
    return compile_packet(columns, profile, context.wave.ordinal)


def _store_packet(tx: Tx, context: WaveContext, packet: Packet, latency_ms: int) -> Wave:
    packet_id = packets.insert(
        tx,
        context.wave.wave_id,
        packet,
        pinned_now=context.wave.pinned_now,
        session_id=context.session.session_id,
        trace_id=context.session.trace_id,
        latency_ms=latency_ms,
    )
    return waves.advance(
        tx,
        context.wave.wave_id,
        "deciding",
        packet_id=packet_id,
        profile_version=packet.profile_version,
        detail=WaveOriented(packet_id=packet_id, digest=packet.digest),
    )

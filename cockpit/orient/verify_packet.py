"""Replay: compile a stored packet again and compare the digests.

See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import dataclasses
import sqlite3

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.canonical_json import text_digest
from cockpit.orient.compile_packet import compile_packet, require_known
from cockpit.orient.epochs import compile_wave, recorded_standing
from cockpit.orient.fact_columns import load_columns
from cockpit.store.context import packets, profiles
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import PacketVerified
from cockpit.store.sessions import waves


class Verification(Struct, frozen=True):
    """``digest`` is what was written with the packet, ``stored`` that of its body as it stands
    today, ``recompiled`` that of the packet compiled again. All three must be one."""

    wave_id: str
    session_id: str
    trace_id: str
    packet_id: str
    profile_id: str
    profile_version: int
    digest: str
    stored: str
    recompiled: str

    @property
    def ok(self) -> bool:
        return self.digest == self.stored == self.recompiled

    @property
    def words(self) -> str:
        """The outcome in one sentence."""
        if self.ok:
            return f"Packet {self.digest[:12]} compiles again to the same digest."
        if self.digest != self.stored:
            return (
                f"The body of packet {self.packet_id} was changed after it was written: it has"
                f" digest {self.stored[:12]}, not {self.digest[:12]}."
            )
        return (
            f"Packet {self.packet_id} is intact, but compiles to {self.recompiled[:12]} now, not"
            f" {self.digest[:12]}: the facts or the profile that it was made of were changed."
        )


def recompile_packet(connection: sqlite3.Connection, wave_id: str) -> Verification:
    """Compile a wave's packet again from the stored facts, profile version and ordinal.

    Raises :class:`~cockpit.core.errors.NotFound` where the wave, its packet or its profile is
    missing, :class:`~cockpit.orient.compile_packet.UnknownAlgorithm`, and as ``compile_packet`` does.
    """
    wave = waves.load(connection, wave_id)
    stored = packets.load(connection, wave_id)
    packet = stored.packet
    profile = profiles.load(connection, packet.profile_id, packet.profile_version)
    require_known(packet.algorithm)
    columns = load_columns(connection, wave.session_id, wave.ordinal)
    if packet.epoch is None:
        again = compile_packet(columns, profile, wave.ordinal, rendering=packet.rendering)
    else:
        standing = recorded_standing(connection, wave.session_id, packet)
        again = compile_wave(columns, profile, wave.ordinal, standing, rendering=packet.rendering)
        again = dataclasses.replace(
            again, epoch=again.epoch and replace(again.epoch, cached=packet.epoch.cached)
        )
    return Verification(
        wave_id,
        wave.session_id,
        wave.trace_id,
        stored.packet_id,
        packet.profile_id,
        packet.profile_version,
        stored.digest,
        text_digest(stored.body_json),
        again.digest,
    )


def journal_verification(tx: Tx, verified: Verification, *, actor: str = "person") -> None:
    """Journal ``orientation.packet.replay_verified``."""
    tx.journal(
        PacketVerified(digest=verified.digest, recompiled=verified.recompiled, ok=verified.ok),
        actor=actor,
        session_id=verified.session_id,
        wave_id=verified.wave_id,
        trace_id=verified.trace_id,
        packet_id=verified.packet_id,
        profile_id=verified.profile_id,
        profile_version=verified.profile_version,
        result="ok" if verified.ok else "error",
        error_code="" if verified.ok else "packet_differs",
    )


def verify_packet(store: Store, wave_id: str, *, actor: str = "person") -> Verification:
    """:func:`recompile_packet` in a reader's snapshot, then :func:`journal_verification`. Blocks."""
    verified = store.read_now(lambda connection: recompile_packet(connection, wave_id))
    store.write_now(lambda tx: journal_verification(tx, verified, actor=actor))
    return verified

"""Looking behind a packet: every fact's fate, what changed between waves, and pins by hand.

Nothing here is stored but the pins: a past wave's verdicts are compiled again from its facts.
Source: design of the screen (band meter), design of Orient ("counted and inspectable").
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import NotFound
from cockpit.store.context import facts, packets, pins, profiles
from cockpit.store.context.packets import StoredPacket
from cockpit.store.sessions import waves

if TYPE_CHECKING:
    from cockpit.orient.diff_packets import PacketDiff
    from cockpit.orient.explain_packet import FactVerdict


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdicts on the facts that a wave had. ``pinned`` are the facts that the next wave keeps."""

    session_id: str
    ordinal: int
    digest: str
    facts: tuple[FactVerdict, ...]
    pinned: frozenset[str]


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed from wave ``before`` to wave ``after``; ``refs`` names the facts' sources."""

    session_id: str
    before: int
    after: int
    change: PacketDiff
    refs: dict[str, str]


@dataclass(frozen=True, slots=True)
class Words:
    """One fact to be read: its source, its words in full, and its provenance as JSON."""

    fact_id: str
    source_ref: str
    text: str
    provenance: str


def explained(
    connection: sqlite3.Connection, session_id: str, ordinal: int | None = None, *, band: str = ""
) -> Explanation:
    """Why each fact of a wave was kept, shortened or dropped; without ``ordinal`` of the newest packet,
    with ``band`` of that band's facts alone.

    Raises :class:`NotFound` where that wave has no packet.
    """
    from cockpit.orient import fact_columns
    from cockpit.orient.explain_packet import explain_packet

    stored = _packet(connection, session_id, ordinal)
    made = stored.packet
    profile = profiles.load(connection, made.profile_id, made.profile_version)
    known = fact_columns.load_columns(connection, session_id, made.ordinal)
    told = explain_packet(known, profile, made.ordinal, algorithm=made.algorithm, band=band)
    return Explanation(
        session_id, made.ordinal, stored.digest, told, pins.select_pinned(connection, session_id)
    )


def difference(
    connection: sqlite3.Connection, session_id: str, before: int, after: int
) -> Difference:
    """What came into a session's packet, went, or changed its level between two waves.

    Raises :class:`NotFound` where one of them has no packet.
    """
    from cockpit.orient.diff_packets import diff_packets

    one, other = (_packet(connection, session_id, at).packet for at in (before, after))
    held = {entry.fact_id for made in (one, other) for _, entry in made.rendered()}
    texts = facts.load_texts(connection, sorted(held))
    refs = {identity: text.source_ref for identity, text in texts.items()}
    return Difference(session_id, before, after, diff_packets(one, other), refs)


def compiled_waves(connection: sqlite3.Connection, session_id: str) -> list[int]:
    """The ordinals of a session's waves that have a packet, in order."""
    found = connection.execute(
        "SELECT ordinal FROM orientation_packets JOIN wave_runs USING (wave_id)"
        " WHERE session_id=? ORDER BY ordinal",
        (session_id,),
    )
    return [ordinal for (ordinal,) in found]


def words(connection: sqlite3.Connection, identities: Sequence[str]) -> dict[str, Words]:
    """The words and provenance of facts by id; ids that are not stored are left out."""
    return {
        identity: Words(identity, text.source_ref, text.full, canonical_json(dict(text.provenance)))
        for identity, text in facts.load_texts(connection, identities).items()
    }


def _packet(connection: sqlite3.Connection, session_id: str, ordinal: int | None) -> StoredPacket:
    made = compiled_waves(connection, session_id)
    if not made:
        raise NotFound(f"Session {session_id} has no packet yet: no wave came as far as Orient.")
    wanted = made[-1] if ordinal is None else ordinal
    if wanted not in made:
        raise NotFound(f"Wave {wanted} of session {session_id} has no packet.")
    wave = next(
        at for at in waves.select_for_session(connection, session_id) if at.ordinal == wanted
    )
    return packets.load(connection, wave.wave_id)

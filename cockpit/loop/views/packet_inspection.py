"""Inspection of packets: why each fact was kept or dropped, and what changed between waves.

Verdicts are not stored; they are compiled again from the wave's facts. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import NotFound
from cockpit.store.context import facts, packets, pins
from cockpit.store.context.packets import StoredPacket
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import waves

if TYPE_CHECKING:
    from cockpit.orient.diff_packets import PacketDiff
    from cockpit.orient.explain_packet import FactVerdict


class Explanation(Struct, frozen=True):
    """The verdicts on a wave's facts; ``pinned`` are the facts that the next wave keeps."""

    session_id: str
    ordinal: int
    digest: str
    facts: tuple[FactVerdict, ...]
    pinned: frozenset[str]
    returns: str = ""
    """Why the wave went back to Orient for an action that was kept; empty where it did not."""


class Difference(Struct, frozen=True):
    """The changes from wave ``before`` to wave ``after``; ``refs`` names the facts' sources.

    ``reasons`` says by fact why the later packet has it, or left it out; a fact that was no candidate any
    more has none.
    """

    session_id: str
    before: int
    after: int
    change: PacketDiff
    refs: dict[str, str]
    reasons: dict[str, str]


class Words(Struct, frozen=True):
    """One fact to read: its source, its whole text, and its provenance as JSON."""

    fact_id: str
    source_ref: str
    text: str
    provenance: str


def explained(
    connection: sqlite3.Connection, session_id: str, ordinal: int | None = None, *, band: str = ""
) -> Explanation:
    """Explain why each fact of a wave was kept, shortened or dropped.

    Without ``ordinal`` this is the wave of the newest packet; ``band`` selects the facts of one band. Raises
    :class:`NotFound` where the wave has no packet.
    """
    from cockpit.orient.explain_packet import explain_stored

    stored = _packet(connection, session_id, ordinal)
    packet = stored.packet
    verdicts = name_skill_reasons(
        connection, session_id, explain_stored(connection, session_id, packet, band=band)
    )
    pinned = pins.select_pinned(connection, session_id)
    returns = find_return(connection, stored.wave_id)
    return Explanation(session_id, packet.ordinal, stored.digest, verdicts, pinned, returns)


def find_return(connection: sqlite3.Connection, wave_id: str) -> str:
    """Return why a wave went back to Orient; '' where it did not."""
    row = connection.execute(
        "SELECT json_extract(detail_json,'$.returns') FROM journal WHERE wave_id=? AND action=?"
        " ORDER BY seq LIMIT 1",
        (wave_id, str(Action.WAVE_STARTED)),
    ).fetchone()
    return "" if row is None or row[0] is None else str(row[0])


def name_skill_reasons(
    connection: sqlite3.Connection, session_id: str, verdicts: tuple[FactVerdict, ...]
) -> tuple[FactVerdict, ...]:
    """Return the verdicts with the reason for which each skill was loaded."""
    if not any(verdict.source_type == "skill" for verdict in verdicts):
        return verdicts
    from cockpit.loop.skills.session_skills import ASKED_WHY, select_asked

    rows = connection.execute(
        "SELECT json_extract(detail_json,'$.name'), json_extract(detail_json,'$.ordinal'),"
        " json_extract(detail_json,'$.why') FROM journal"
        " WHERE action=? AND +session_id=? AND json_extract(detail_json,'$.status')='loaded'"
        " ORDER BY seq",
        (str(Action.SKILL_CHANGED), session_id),
    )
    reasons = {(f"skill:{name}", int(ordinal)): str(why) for name, ordinal, why in rows}
    reasons |= dict.fromkeys(select_asked(connection, session_id), ASKED_WHY)
    return tuple(
        replace(verdict, reason=reasons[verdict.source_ref, verdict.ordinal])
        if verdict.verdict != "dropped" and (verdict.source_ref, verdict.ordinal) in reasons
        else verdict
        for verdict in verdicts
    )


def difference(
    connection: sqlite3.Connection, session_id: str, before: int, after: int
) -> Difference:
    """Compare the packets of two waves: facts added, removed, or kept at another level.

    Raises :class:`NotFound` where one of them has no packet.
    """
    from cockpit.orient.diff_packets import diff_packets
    from cockpit.orient.explain_packet import explain_stored

    old, new = (_packet(connection, session_id, at).packet for at in (before, after))
    fact_ids = {entry.fact_id for packet in (old, new) for _, entry in packet.rendered()}
    texts = facts.load_texts(connection, sorted(fact_ids))
    refs = {identity: text.source_ref for identity, text in texts.items()}
    verdicts = name_skill_reasons(
        connection, session_id, explain_stored(connection, session_id, new)
    )
    reasons = {each.fact_id: each.reason for each in verdicts if each.fact_id in refs}
    return Difference(session_id, before, after, diff_packets(old, new), refs, reasons)


def compiled_waves(connection: sqlite3.Connection, session_id: str) -> list[int]:
    """Return the ordinals of a session's waves that have a packet, in order."""
    rows = connection.execute(
        "SELECT ordinal FROM orientation_packets JOIN wave_runs USING (wave_id)"
        " WHERE session_id=? ORDER BY ordinal",
        (session_id,),
    )
    return [ordinal for (ordinal,) in rows]


def words(connection: sqlite3.Connection, identities: Sequence[str]) -> dict[str, Words]:
    """Return the texts of facts by id; ids that are not stored are left out."""
    return {
        identity: Words(identity, text.source_ref, text.full, canonical_json(dict(text.provenance)))
        for identity, text in facts.load_texts(connection, identities).items()
    }


def _packet(connection: sqlite3.Connection, session_id: str, ordinal: int | None) -> StoredPacket:
    ordinals = compiled_waves(connection, session_id)
    if not ordinals:
        raise NotFound(f"Session {session_id} has no packet yet: no wave has reached Orient.")
    selected = ordinals[-1] if ordinal is None else ordinal
    if selected not in ordinals:
        raise NotFound(
            f"Wave {selected} of session {session_id} has no packet; the newest with one is wave"
            f" {ordinals[-1]}."
        )
    session_waves = waves.select_for_session(connection, session_id)
    wave = next(wave for wave in session_waves if wave.ordinal == selected)
    return packets.load(connection, wave.wave_id)

"""An orientation packet as an outside agent reads it: what a wave knew, at three sizes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.backlog.response_modes import page
from cockpit.core.errors import NotFound
from cockpit.mcp.loop_tools import PacketOf
from cockpit.store.context import facts, packets
from cockpit.store.context.packets import Entry, StoredPacket
from cockpit.store.sessions import sessions

READ_TOKENS = 16_000
"""The most that one answer holds of what was read."""


def packet_of(connection: sqlite3.Connection, asked: PacketOf, own: str) -> dict[str, Any]:
    """The packet that is asked for; ``own`` is the caller's session, or ''. Raises ``NotFound``."""
    session_id = asked.session_id or own or _newest(connection)
    sessions.load(connection, session_id)
    stored = _pick(packets.select_for_session(connection, session_id), session_id, asked.wave)
    packet = stored.packet
    head = {
        "packet_id": stored.packet_id,
        "session_id": session_id,
        "wave": packet.ordinal,
        "digest": stored.digest,
        "token_used": packet.token_used,
        "token_budget": packet.token_budget,
        "profile_version": packet.profile_version,
        "facts": packet.facts,
        "dropped": packet.dropped,
    }
    if asked.fields == "minimal":
        return head
    bands = {
        band.name: {"used": band.used, "target": band.target_tokens, "dropped": band.dropped}
        for band in packet.bands
    }
    entries = [(band, entry) for band, entry in packet.rendered()]
    words = facts.load_texts(connection, [entry.fact_id for _, entry in entries])
    whole = asked.fields == "full"
    items = [_entry(band, entry, words[entry.fact_id], whole) for band, entry in entries]
    return {**head, "bands": bands, **paged("entries", items, asked.offset)}


def paged(name: str, items: Sequence[Mapping[str, Any]], offset: int) -> dict[str, Any]:
    """``items`` from ``offset`` on, as many as one answer holds."""
    start = max(0, offset)
    return page(items[start:], READ_TOKENS, name=name, offset=start)


def _entry(band: str, entry: Entry, words: facts.FactText, whole: bool) -> dict[str, Any]:
    levels = {"full": words.full, "outline": words.outline or "", "reference": words.reference}
    line = {
        "source": words.source_ref,
        "band": band,
        "level": entry.level,
        "tokens": entry.tokens,
    }
    return {**line, "text": levels[entry.level]} if whole else line


def _pick(found: list[StoredPacket], session_id: str, wave: int | None) -> StoredPacket:
    chosen = [one for one in found if wave is None or one.packet.ordinal == wave]
    if not chosen:
        which = "no packet" if wave is None else f"no packet of wave {wave}"
        raise NotFound(f"Session {session_id} has {which}: it did not come as far as Orient.")
    return chosen[-1]


def _newest(connection: sqlite3.Connection) -> str:
    row = connection.execute(
        "SELECT session_id FROM orientation_packets JOIN wave_runs USING(wave_id)"
        " ORDER BY orientation_packets.rowid DESC LIMIT 1"
    ).fetchone()
    if row is None:
        raise NotFound("No wave has a packet yet: ask to read something with request_context.")
    return str(row[0])

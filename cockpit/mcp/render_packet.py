"""An orientation packet as a JSON answer for an external agent, in three sizes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from cockpit.backlog.response_modes import page
from cockpit.core.errors import NotFound
from cockpit.store.context import facts, packets
from cockpit.store.context.entry_text import facts_shown, text_shown
from cockpit.store.context.packets import Entry, StoredPacket
from cockpit.store.sessions import sessions

FieldSet = Literal["minimal", "standard", "full"]
"""How much of a packet an answer shows: its totals, also bands and entries, also the entries' text."""

MAX_CONTENT_TOKENS = 16_000
"""The most tokens of project content in one answer."""


def render_packet(
    connection: sqlite3.Connection,
    session_id: str,
    *,
    wave: int | None,
    fields: FieldSet,
    offset: int,
) -> dict[str, Any]:
    """Render the packet of a session's wave, or of its newest; '' means the newest session.

    ``offset`` is the first entry shown. Raises ``NotFound``.
    """
    session_id = session_id or _newest_session(connection)
    sessions.load(connection, session_id)
    stored = _pick(packets.select_for_session(connection, session_id), session_id, wave)
    packet = stored.packet
    totals = {
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
    if fields == "minimal":
        return totals
    bands = {
        band.name: {"used": band.used, "target": band.target_tokens, "dropped": band.dropped}
        for band in packet.bands
    }
    entries = list(packet.rendered())
    texts = facts.load_texts(connection, facts_shown(entry for _, entry in entries))
    items = [
        _render_entry(band, entry, texts, with_text=fields == "full") for band, entry in entries
    ]
    return {**totals, "bands": bands, **render_page("entries", items, offset)}


def render_page(name: str, items: Sequence[Mapping[str, Any]], offset: int) -> dict[str, Any]:
    """Render ``items`` from ``offset`` on, as many as fit into one answer."""
    start = max(0, offset)
    return page(items[start:], MAX_CONTENT_TOKENS, name=name, offset=start)


def _render_entry(
    band: str, entry: Entry, texts: Mapping[str, facts.FactText], *, with_text: bool
) -> dict[str, Any]:
    line = {
        "source": texts[entry.fact_id].source_ref,
        "band": band,
        "level": entry.level,
        "tokens": entry.tokens,
    }
    return {**line, "text": text_shown(entry, texts)} if with_text else line


def _pick(stored: list[StoredPacket], session_id: str, wave: int | None) -> StoredPacket:
    matches = [row for row in stored if wave is None or row.packet.ordinal == wave]
    if not matches:
        which = "no packet" if wave is None else f"no packet of wave {wave}"
        raise NotFound(f"Session {session_id} has {which}: the wave did not reach Orient.")
    return matches[-1]


def _newest_session(connection: sqlite3.Connection) -> str:
    row = connection.execute(
        "SELECT session_id FROM orientation_packets JOIN wave_runs USING(wave_id)"
        " ORDER BY orientation_packets.rowid DESC LIMIT 1"
    ).fetchone()
    if row is None:
        raise NotFound("No wave has a packet yet: ask to read something with request_context.")
    return str(row[0])

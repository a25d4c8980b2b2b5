"""What a context request asks for, compared with the current packet and with what was read before.

An item that the session has read before is read again, and nothing of that is stored. It is *shown* where
the packet has all of its answer, in full and in the version of now. It is *stored* where the packet dropped
it and nothing changed since: then it needs no decision.
See ``docs/reference/guards.md``, redundant reads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from cockpit.core.canonical_json import canonical_json
from cockpit.loop.wave_context import WaveContext
from cockpit.observe.context_request import ContextRequest
from cockpit.observe.gateway import ContextGateway
from cockpit.observe.scope_items import REMOTE, ScopeItem, ScopeRefused, parse_item
from cockpit.store.context import observation_jobs, packets
from cockpit.store.context.facts import Fact
from cockpit.store.context.packets import Entry, detail_of

MOST_COMPARED = 1_000
"""Parts of an item, such as files of a glob, that are read to compare them."""


class PacketComparison(Struct, frozen=True):
    """Items of a request by their text as it was written; an item is in one of the two or in none.

    ``shown`` has their places in the packet, as text for the model.
    """

    shown: Mapping[str, str] = field(default_factory=dict)
    stored: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)


class _InPacket(Struct, frozen=True):
    """The facts that the packet shows in full, and the items that the session has read before."""

    entries: Mapping[str, tuple[str, Entry]]
    read_before: frozenset[str]

    def where(self, fact_ids: Iterable[str]) -> str:
        """Return the places of facts in the packet, as text."""
        names = [f"{self.entries[fact_id][0]}, {fact_id}" for fact_id in dict.fromkeys(fact_ids)]
        more = f" and {len(names) - 4:,} more" if len(names) > 4 else ""
        return ", ".join(names[:4]) + more


async def compare_with_packet(
    context: WaveContext, gateway: ContextGateway, items: Sequence[str]
) -> PacketComparison:
    """Compare the items of a request with the packet of the wave."""
    parsed = {item: scope for item in items if (scope := _parse(item)) is not None}
    parsed = {item: scope for item, scope in parsed.items() if scope.kind not in REMOTE}
    if not parsed:
        return PacketComparison()
    in_packet = await context.store.read(
        lambda connection: _read_packet(connection, context, list(parsed.values()))
    )
    shown: dict[str, str] = {}
    stored: dict[str, tuple[Fact, ...]] = {}
    for item, scope in parsed.items():
        if str(scope) not in in_packet.read_before:
            continue
        answer = await _read_again(gateway, scope)
        if answer and all(fact.fact_id in in_packet.entries for fact in answer):
            shown[item] = in_packet.where(fact.fact_id for fact in answer)
        elif answer and await _has_all(context, answer):
            stored[item] = answer
    return PacketComparison(shown, stored)


def _parse(item: str) -> ScopeItem | None:
    try:
        return parse_item(item)
    except ScopeRefused:
        return None


async def _has_all(context: WaveContext, answer: Sequence[Fact]) -> bool:
    """Whether the session has all of these facts, which are named by their content."""
    names = sorted({fact.fact_id for fact in answer})
    (count,) = await context.store.read(
        lambda connection: connection.execute(
            "SELECT count(DISTINCT fact_id) FROM session_facts WHERE session_id=?"
            " AND superseded_at IS NULL AND fact_id IN (SELECT value FROM json_each(?))",
            (context.session.session_id, canonical_json(names)),
        ).fetchone()
    )
    return bool(count == len(names))


def _read_packet(
    connection: sqlite3.Connection, context: WaveContext, scopes: Sequence[ScopeItem]
) -> _InPacket:
    packet = packets.load(connection, context.wave.wave_id).packet
    entries = {
        fact_id: shown for fact_id, shown in packet.in_force().items() if detail_of(shown[1]) == 0
    }
    read_before = observation_jobs.select_read_before(
        connection, context.session.session_id, [str(scope) for scope in scopes]
    )
    return _InPacket(entries, read_before)


async def _read_again(gateway: ContextGateway, scope: ScopeItem) -> tuple[Fact, ...]:
    """Read an item; empty where it cannot be read. Lines of files are compared by the guard."""
    parts = (await gateway.expand([scope]))[0]
    if len(parts) > MOST_COMPARED:
        return ()
    fetched = await gateway.fetch(ContextRequest("compare", "compare", tuple(parts)))
    if any(outcome.error for outcome in fetched.outcomes):
        return ()
    return fetched.facts

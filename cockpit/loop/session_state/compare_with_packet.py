"""What a context request asks for, compared with the current packet and with what was read before.

An item is *shown* where the packet has all of its answer, in full and in the version of now. It is *stored*
where the session has read it, the packet dropped it, and nothing changed since: its facts are served again.
See ``docs/reference/guards.md``, redundant reads.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from cockpit.loop.wave_context import WaveContext
from cockpit.observe.context_request import ContextRequest
from cockpit.observe.freshness.content_marks import mark_items
from cockpit.observe.gateway import ContextGateway
from cockpit.observe.scope_items import REMOTE, ScopeItem, ScopeRefused, parse_item
from cockpit.store.context import observation_jobs, packets
from cockpit.store.context.facts import Fact
from cockpit.store.context.packets import Entry, detail_of
from cockpit.store.context.stored_facts import load_facts

MOST_MARKED = 1_000
"""Items that are looked at together; more are read again, which takes about as long."""


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
    """Compare the items of a request with the packet of the wave.

    An item that has no mark of its content is read and compared, if the session has read it before; nothing
    of that is stored.
    """
    parsed = {item: scope for item in items if (scope := _parse(item)) is not None}
    parsed = {item: scope for item, scope in parsed.items() if scope.kind not in REMOTE}
    if not parsed:
        return PacketComparison()
    in_packet = await context.store.read(
        lambda connection: _read_packet(connection, context, list(parsed.values()))
    )
    kept = await _find_kept(context, gateway, parsed)
    shown: dict[str, str] = {}
    stored: dict[str, tuple[Fact, ...]] = {}
    for item, scope in parsed.items():
        answer = kept.get(item) or await _read_again(gateway, in_packet, scope)
        if not answer:
            continue
        if all(fact.fact_id in in_packet.entries for fact in answer):
            shown[item] = in_packet.where(fact.fact_id for fact in answer)
        elif item in kept:
            stored[item] = kept[item]
    return PacketComparison(shown, stored)


async def find_stored_answers(
    context: WaveContext, gateway: ContextGateway, items: Sequence[str]
) -> tuple[list[str], dict[int, tuple[Fact, ...]]]:
    """Return the mark of each item, and by index the facts of those that have not changed since.

    No file is opened and no program started.
    """
    if len(items) > MOST_MARKED:
        return [""] * len(items), {}
    scopes = [parse_item(item) for item in items]
    marks = await asyncio.to_thread(mark_items, gateway.ground, scopes)
    session_id, kept = context.session.session_id, context.engine.answers
    ids = {
        at: fact_ids
        for at, scope in enumerate(scopes)
        if (fact_ids := kept.find(session_id, str(scope), marks[at]))
    }
    if not ids:
        return marks, {}

    def load(connection: sqlite3.Connection) -> dict[int, tuple[Fact, ...]]:
        answers = {at: load_facts(connection, session_id, each) for at, each in ids.items()}
        return {at: answer for at, answer in answers.items() if answer}

    return marks, await context.store.read(load)


def _parse(item: str) -> ScopeItem | None:
    try:
        return parse_item(item)
    except ScopeRefused:
        return None


async def _find_kept(
    context: WaveContext, gateway: ContextGateway, parsed: Mapping[str, ScopeItem]
) -> dict[str, tuple[Fact, ...]]:
    session_id, answers = context.session.session_id, context.engine.answers
    items = [item for item, scope in parsed.items() if answers.has(session_id, str(scope))]
    if not items:
        return {}
    _, stored = await find_stored_answers(context, gateway, items)
    return {items[at]: answer for at, answer in stored.items()}


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


async def _read_again(
    gateway: ContextGateway, in_packet: _InPacket, scope: ScopeItem
) -> tuple[Fact, ...]:
    """Read an item that the session has read, to compare it; empty where it cannot be read.

    Without a mark of its content nothing else says whether it is in the packet. Lines of files are compared
    by the guard.
    """
    if not in_packet.entries or str(scope) not in in_packet.read_before:
        return ()
    parts = (await gateway.expand([scope]))[0]
    if len(parts) > len(in_packet.entries):
        return ()  # more than the packet has
    fetched = await gateway.fetch(ContextRequest("compare", "compare", tuple(parts)))
    if any(outcome.error for outcome in fetched.outcomes):
        return ()
    return fetched.facts

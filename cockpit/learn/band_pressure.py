"""Crowding: sources that used a band's tokens while something was missed, and served no decision.

A packet that left out what its agent then asked for spent those tokens on something else. A decision
names the places that its facts come from, in its text and its calls. A source that uses many tokens
again and again, that no decision names and no agent asks for, is worth less than its weight.
See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json
from cockpit.store.context import packets
from cockpit.store.context.facts import chunks
from cockpit.store.context.packets import Packet
from cockpit.store.context.wave_feedback import Feedback
from cockpit.store.sessions import plans

SHARE_PERCENT = 25
"""The least share of a band's tokens that crowds it."""


class _Held(Struct, frozen=True):
    """A fact in a packet: its source, and the place in the project that it comes from."""

    source: str
    band: str
    tokens: int
    path: str


def count_crowding(
    connection: sqlite3.Connection, feedback: Sequence[Feedback], spared: Collection[str]
) -> Counter[str]:
    """Count in how many of the waves each source crowded a band in which something was missed.

    Pinned facts do not count. A source is useful, and never counted, if any of the waves missed it or any
    decision named it; neither are ``spared`` sources, nor facts without a place. A decision that names
    nothing of its packet says nothing.
    """
    useful = {signal.source_type for entry in feedback for signal in entry.assessment.missed} | set(
        spared
    )
    counted: Counter[str] = Counter()
    for entry in feedback:
        words = _words(connection, entry.wave_id)
        stored = packets.find(connection, entry.wave_id) if words else None
        if stored is None:
            continue
        facts = list(_held(connection, stored.packet))
        named = {fact.source for fact in facts if fact.path in words}
        useful |= named
        missed = {signal.band for signal in entry.assessment.missed}
        if named and missed:
            counted.update(_large(facts, stored.packet, missed))
    return Counter({source: n for source, n in counted.items() if source not in useful})


def _words(connection: sqlite3.Connection, wave_id: str) -> str:
    """Return the text and the calls of a wave's decision."""
    plan = plans.find(connection, wave_id)
    if plan is None:
        return ""
    calls = [call["arguments"] for call in plan.calls if call["arguments"]]
    return f"{plan.text}\n{canonical_json(calls)}" if plan.text or calls else ""


def _held(connection: sqlite3.Connection, packet: Packet) -> Iterator[_Held]:
    """Yield the facts of a packet that are not pinned and come from a place."""
    entries = {entry.fact_id: (band, entry) for band, entry in packet.rendered()}
    for marks, chunk in chunks(list(entries)):
        for identity, source, path in connection.execute(
            "SELECT fact_id, source_type, json_extract(provenance_json,'$.path')"  # noqa: S608 - only question marks
            f" FROM observed_facts WHERE fact_id IN ({marks})",
            tuple(chunk),
        ):
            band, entry = entries[identity]
            if path and not entry.pinned:
                yield _Held(source, band, entry.tokens, str(path))


def _large(facts: Sequence[_Held], packet: Packet, bands: Collection[str]) -> set[str]:
    """Return the sources that use at least :data:`SHARE_PERCENT` of one of the bands."""
    used = {band.name: band.used for band in packet.bands}
    tokens: Counter[tuple[str, str]] = Counter()
    for fact in facts:
        tokens[fact.band, fact.source] += fact.tokens
    return {
        source
        for (band, source), count in tokens.items()
        if band in bands and count * 100 >= used[band] * SHARE_PERCENT
    }

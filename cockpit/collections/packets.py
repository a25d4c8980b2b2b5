"""Orientation packets of a session: what each wave's prompt had, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cockpit.collections.choose_session import choose_session
from cockpit.collections.collection import Collection, Field, Part, View, open_records
from cockpit.core.errors import NotFound
from cockpit.core.text import pluralize
from cockpit.store.context import facts, packets
from cockpit.store.context.packets import StoredPacket
from cockpit.store.sessions import waves

if TYPE_CHECKING:
    from cockpit.loop.views.prompt_cost import PromptCost


class PacketRow(Struct, frozen=True):
    """A packet, and what its prompt cost."""

    stored: StoredPacket
    cost: PromptCost
    refs: Mapping[str, str] = {}
    """Where its facts are from, by id, where it is shown alone."""


def _read(view: View, session: str | None) -> Sequence[PacketRow]:
    from cockpit.loop.views.prompt_cost import read_prompt_cost

    connection = open_records(view)
    session_id = choose_session(connection, session or view.session_id or None)
    return [
        PacketRow(stored, read_prompt_cost(connection, stored))
        for stored in packets.select_for_session(connection, session_id)
    ]


def _find(view: View, name: str, session: str | None = None) -> PacketRow:
    from cockpit.loop.views.prompt_cost import read_prompt_cost

    connection = open_records(view)
    if name != "last" and not name.isdecimal():
        stored = packets.load(connection, waves.load(connection, name).wave_id)
    else:
        rows = _read(view, session)
        if name != "last":
            rows = [row for row in rows if str(row.stored.packet.ordinal) == name]
        if not rows:
            raise NotFound(
                f"There is no packet of wave {name}. Write last, or the number of a wave."
            )
        stored = rows[-1].stored
    named = [entry.fact_id for _, entry in stored.packet.rendered()]
    refs = {each: text.source_ref for each, text in facts.load_texts(connection, named).items()}
    return PacketRow(stored, read_prompt_cost(connection, stored), refs)


def _body(row: PacketRow) -> dict[str, Any]:
    stored = row.stored
    return {
        "wave": stored.packet.ordinal,
        "packet_id": stored.packet_id,
        "wave_id": stored.wave_id,
        "digest": stored.digest,
        "token_used": stored.packet.token_used,
        "token_budget": stored.packet.token_budget,
        **row.cost.body(),
        "facts": stored.packet.facts,
        "dropped": stored.packet.dropped,
        "bands": {band.name: band.used for band in stored.packet.bands},
    }


def _document(row: PacketRow) -> dict[str, Any]:
    stored = row.stored
    return {"packet_id": stored.packet_id, "digest": stored.digest, **stored.packet.body()}


def _detail(row: PacketRow) -> Iterator[Part]:
    compiled = row.stored.packet
    why = ", ".join(f"{reason} {count:,}" for reason, count in compiled.drops if count)
    yield Part(text=row.stored.packet_id)
    facts_words = [
        ("digest", row.stored.digest),
        ("sent", f"{compiled.sent:,} of {compiled.token_budget:,} tokens"),
        ("facts", f"{compiled.facts:,}"),
        ("dropped", f"{compiled.dropped:,}{f' ({why})' if why else ''}"),
        ("profile", f"{compiled.profile_id} version {compiled.profile_version}"),
        ("compiled", compiled.algorithm),
        ("cost", row.cost.words),
    ]
    yield Part(fields=facts_words)
    bands = [
        (
            f"{band.name:<12}",
            f"{band.used:,} used of {band.min_tokens:,} to {band.max_tokens:,}, target"
            f" {band.target_tokens:,} · {pluralize(len(band.entries), 'fact')}, {band.dropped:,} dropped",
        )
        for band in compiled.bands
    ]
    yield Part("bands", bands)
    entries = [
        (
            f"{band:<12} {entry.tokens:>7,} {entry.level:<9}{' pinned' if entry.pinned else ''}",
            row.refs.get(entry.fact_id, entry.fact_id),
        )
        for band, entry in compiled.rendered()
    ]
    yield Part("facts", entries)


COLLECTION: Collection[PacketRow] = Collection(
    name="packets",
    command="packet",
    title="Packets",
    summary="Inspect orientation packets, pin facts.",
    help="""Inspect the orientation packets of a session, and pin facts.

    A packet contains the facts of one wave's prompt. It never changes. WAVE is the number of a wave, or last:
    its packet is shown with every fact in it. `cockpit debug packet` explains, verifies and compares packets.
    """,
    examples=("cockpit packet", "cockpit packet 2", "cockpit packet last --prompt"),
    row="WAVE",
    sample="2",
    columns={
        "WAVE": lambda row: str(row.stored.packet.ordinal),
        "DIGEST": lambda row: row.stored.digest[:12],
        "TOKENS": lambda row: f"{row.stored.packet.sent:,}",
        "OF": lambda row: f"{row.stored.packet.token_budget:,}",
        "CACHED": lambda row: (
            "–" if row.cost.cached_expected is None else f"{row.cost.cached_expected:,}"
        ),
        "FACTS": lambda row: f"{row.stored.packet.facts:,}",
        "DROPPED": lambda row: f"{row.stored.packet.dropped:,}",
        "PACKET": lambda row: row.stored.packet_id,
    },
    read=_read,
    find=_find,
    none="The session has no packets yet. Its first wave compiles one.",
    detail=lambda row: tuple(_detail(row)),
    body=_body,
    document=_document,
    filters=(
        Field("session", "Use this session. Default: the last one.", metavar="ID", of_row=True),
    ),
    source="records",
    synonyms="facts context prompt",
    about=lambda row: (
        f"{row.stored.packet.sent:,} of {row.stored.packet.token_budget:,} tokens ·"
        f" {pluralize(row.stored.packet.facts, 'fact')}, {row.stored.packet.dropped:,} dropped"
    ),
)

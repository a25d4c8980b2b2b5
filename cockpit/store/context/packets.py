"""Orientation packets: what one wave knows, compiled, immutable, named by its digest.

The record that Orient makes and Decide renders, its JSON body and its rows. A body names facts and
contains none of their text; neither session nor time nor machine is in it, so the same facts give
the same digest anywhere. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from cockpit.core.canonical_json import canonical_json, text_digest
from cockpit.core.errors import NotFound, StoreError
from cockpit.store.context.facts import LEVELS
from cockpit.store.context.packet_epoch import Epoch, epoch_from_body
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import BandUse, EpochUse, PacketCompiled

RENDER_ORDER = (
    "identity",
    "capabilities",
    "objectives",
    "situational",
    "exploration",
    "reserve",
)
"""Bands as a model reads them: stable ones come first, for providers' prompt caches."""

REASONS = ("budget", "band_ceiling", "source_cap", "duplicate", "superseded", "low_utility")
"""Why a fact can be missing from a packet."""


DIFF = "diff"
"""The level of a fact that is shown as its difference from the one that it replaces."""
GONE = "gone"
"""The level of a line that says that a fact above holds no longer."""
POINTED = "pointed"
"""The level of a fact that is shown whole, but for lines that stand above: it points to them."""
ENTRY_LEVELS = (*LEVELS, DIFF, GONE, POINTED)
_LEVEL_CODES = {level: code for code, level in enumerate(ENTRY_LEVELS)}


class PacketExists(StoreError):
    """The wave has another packet already: packets are never replaced."""

    code = "packet_exists"


class Entry(Struct, frozen=True):
    """One fact in a packet."""

    fact_id: str
    level: str
    tokens: int
    pinned: bool
    ordinal: int
    """The wave that first saw the fact."""
    added: int = 0
    """The wave that appended it to the packets of its epoch; 0: the epoch began with it."""
    base: str = ""
    """The fact above that it replaces, shown as a difference or whole; of a pointed one the facts that it
    points to, with a space between."""

    @property
    def place(self) -> int:
        """The wave under which a prompt shows it."""
        return self.added or self.ordinal

    def body(self) -> list[Any]:
        """Return it as a JSON value."""
        level, pinned = _LEVEL_CODES[self.level], int(self.pinned)
        if self.added or self.base:
            return [
                *(self.fact_id, level, self.tokens, pinned, self.ordinal),
                *(self.added, self.base),
            ]
        return [self.fact_id, level, self.tokens, pinned, self.ordinal]


def _entry_from_body(row: list[Any]) -> Entry:
    fact_id, level, tokens, pinned, ordinal, *appended = row
    return Entry(fact_id, ENTRY_LEVELS[level], tokens, bool(pinned), ordinal, *appended)


class PacketBand(Struct, frozen=True):
    """One band: its limits and use in tokens, its facts in order of time, its drops."""

    name: str
    min_tokens: int
    target_tokens: int
    max_tokens: int
    used: int
    dropped: int
    entries: tuple[Entry, ...]


class Overheads(Struct, frozen=True):
    """What a prompt takes beside its facts, in tokens: input of the compiler, kept with the packet."""

    tools: int = 0
    """The definitions of the tools; they count for ``capabilities``."""
    answer: int = 0
    """Room for the answer; like the rest it counts for ``reserve``."""
    frames: int = 0
    """What providers put around messages."""
    margin: int = 0
    """What the whole prompt took more than the sum of its parts, when it was measured."""

    @property
    def total(self) -> int:
        return self.tools + self.answer + self.frames + self.margin

    def in_band(self, band: str) -> int:
        """Return the tokens that count for a band."""
        if band == "capabilities":
            return self.tools
        return self.total - self.tools if band == "reserve" else 0


class Rendering(Struct, frozen=True):
    """How the prompt of a packet was measured."""

    overheads: Overheads
    tokenizer: str = ""
    """The vocabulary that the prompt was counted with; empty: it was not rendered."""
    scale: int = 1000
    """Thousandths: what the model's provider counted in earlier waves, as a part of what was counted here."""
    tokens: int = 0
    """Tokens of the whole prompt, counted and scaled: system text, messages and tool definitions."""
    prompt_sha256: str = ""
    """Digest of what was sent."""

    def body(self) -> dict[str, Any]:
        """Return it as a JSON value; :func:`rendering_from_body` reverses it."""
        overheads = self.overheads
        return {
            "tools": overheads.tools,
            "answer": overheads.answer,
            "frames": overheads.frames,
            "margin": overheads.margin,
            "tokenizer": self.tokenizer,
            "scale": self.scale,
            "tokens": self.tokens,
            "prompt_sha256": self.prompt_sha256,
        }


NOT_RENDERED = Rendering(Overheads())
"""For packets that no prompt is made of."""


def rendering_from_body(body: Mapping[str, Any]) -> Rendering:
    """Make a rendering from its body."""
    overheads = Overheads(body["tools"], body["answer"], body["frames"], body["margin"])
    return Rendering(
        overheads, body["tokenizer"], body["scale"], body["tokens"], body["prompt_sha256"]
    )


@dataclass(frozen=True, slots=True)
class Packet:
    """A compiled packet."""

    algorithm: str
    ordinal: int
    profile_id: str
    profile_version: int
    profile_digest: str
    """Covers the content of the profile's version."""
    ranking: str
    token_budget: int
    token_used: int
    bands: tuple[PacketBand, ...]
    drops: tuple[tuple[str, int], ...]
    """Counts the facts that are not in the packet, by reason."""
    rendering: Rendering = NOT_RENDERED
    epoch: Epoch | None = None
    """None for a packet that was compiled by itself."""
    _digests: list[str] = field(default_factory=list, init=False, repr=False, compare=False)
    """Its digest, once it was asked for."""

    @property
    def overheads(self) -> Overheads:
        """What its prompt takes beside its facts."""
        return self.rendering.overheads

    @property
    def rendered_tokens(self) -> int | None:
        """Tokens of the prompt that was rendered; None where it was not measured."""
        return self.rendering.tokens if self.rendering.tokenizer else None

    @property
    def sent(self) -> int:
        """Tokens of the prompt, without the room for its answer; those counted where it was not measured."""
        return self.rendered_tokens or self.token_used

    @property
    def facts(self) -> int:
        """How many facts are in it."""
        return sum(len(band.entries) for band in self.bands)

    @property
    def dropped(self) -> int:
        """How many facts are not in it."""
        return sum(count for _, count in self.drops)

    @property
    def digest(self) -> str:
        """sha256 of the canonical JSON of :meth:`body`."""
        return self._digests[0] if self._digests else self.seal()[1]

    def seal(self) -> tuple[str, str]:
        """Return the canonical JSON of :meth:`body` and its sha256."""
        text = canonical_json(self.body(), is_plain=True)
        digest = text_digest(text)
        self._digests[:] = [digest]
        return text, digest

    def rendered(self) -> list[tuple[str, Entry]]:
        """Return (band, entry) in the order in which a model reads them."""
        bands = {band.name: band.entries for band in self.bands}
        return [(name, entry) for name in RENDER_ORDER for entry in bands[name]]

    def in_force(self) -> dict[str, tuple[str, Entry]]:
        """Return (band, entry) by fact id of what the packet says now: the last word on each fact.

        What a later entry replaces or takes back is still in the prompt, and not in here.
        """
        now: dict[str, tuple[str, Entry]] = {}
        for band, entry in sorted(self.rendered(), key=_wave_added):
            if entry.level != POINTED:
                now.pop(entry.base, None)
            shown = now.get(entry.fact_id)
            if entry.level == GONE:
                now.pop(entry.fact_id, None)
            elif shown is None or detail_of(entry) <= detail_of(shown[1]):
                now[entry.fact_id] = (band, entry)
        return now

    def body(self) -> dict[str, Any]:
        """Return the packet as a JSON value; :func:`packet_from_body` reverses it.

        An entry is ``[fact_id, level, tokens, pinned, ordinal]``, with level 0 full, 1 outline, 2
        reference, 3 diff, 4 gone, 5 pointed; an appended or pointed one has its wave and its base, too.
        """
        placed = {} if self.epoch is None else {"epoch": self.epoch.body()}
        return {
            **placed,
            "rendering": self.rendering.body(),
            "algorithm": self.algorithm,
            "ordinal": self.ordinal,
            "profile": [self.profile_id, self.profile_version, self.profile_digest],
            "ranking": self.ranking,
            "token_budget": self.token_budget,
            "token_used": self.token_used,
            "bands": [
                {
                    "band": band.name,
                    "min": band.min_tokens,
                    "target": band.target_tokens,
                    "max": band.max_tokens,
                    "used": band.used,
                    "dropped": band.dropped,
                    "entries": [entry.body() for entry in band.entries],
                }
                for band in self.bands
            ],
            "drops": dict(self.drops),
        }


def _wave_added(shown: tuple[str, Entry]) -> int:
    return shown[1].added


def packet_from_body(body: Mapping[str, Any]) -> Packet:
    """Make a packet from its body. Raises :class:`StoreError` for any other value."""
    try:
        profile_id, profile_version, profile_digest = body["profile"]
        return Packet(
            body["algorithm"],
            body["ordinal"],
            profile_id,
            profile_version,
            profile_digest,
            body["ranking"],
            body["token_budget"],
            body["token_used"],
            tuple(
                PacketBand(
                    band["band"],
                    band["min"],
                    band["target"],
                    band["max"],
                    band["used"],
                    band["dropped"],
                    tuple(map(_entry_from_body, band["entries"])),
                )
                for band in body["bands"]
            ),
            tuple((reason, body["drops"][reason]) for reason in REASONS if reason in body["drops"]),
            rendering_from_body(body["rendering"]),
            epoch_from_body(body["epoch"]) if "epoch" in body else None,
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise StoreError(f"This is not the body of an orientation packet: {error!r}.") from error


_DETAIL = {DIFF: 0, POINTED: 0} | {level: detail for detail, level in enumerate(LEVELS)}


def detail_of(entry: Entry) -> int:
    """Return how much of its fact an entry shows: 0 all of it, 1 its outline, 2 a reference."""
    return _DETAIL[entry.level]


class StoredPacket(Struct, frozen=True):
    """A packet's row."""

    packet_id: str
    wave_id: str
    digest: str
    """As it was written, whatever the body says today."""
    created_at: str
    body_json: str

    @property
    def packet(self) -> Packet:
        return packet_from_body(msgspec.json.decode(self.body_json))


def make_packet_id(digest: str, wave_id: str) -> str:
    """``k-``, 16 characters of the digest, and the wave."""
    return f"k-{digest[:16]}-{wave_id}"


def insert(
    tx: Tx,
    wave_id: str,
    packet: Packet,
    *,
    pinned_now: str,
    session_id: str,
    trace_id: str = "",
    latency_ms: int | None = None,
) -> str:
    """Store a wave's packet and journal ``orientation.packet.compiled``; returns its id.

    ``pinned_now`` is the wave's pinned time. A wave has one packet: storing it again changes
    nothing, another raises :class:`PacketExists`.
    """
    body, digest = packet.seal()
    identity = make_packet_id(digest, wave_id)
    added = tx.execute(
        "INSERT INTO orientation_packets(packet_id, wave_id, profile_id, profile_version,"
        " token_budget, token_used, packet_json, digest_sha256, created_at)"
        " VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
        (
            identity,
            wave_id,
            packet.profile_id,
            packet.profile_version,
            packet.token_budget,
            packet.token_used,
            body,
            digest,
            pinned_now,
        ),
    )
    if added.rowcount != 1:
        stored = find(tx.connection, wave_id)
        if stored is not None and stored.packet_id == identity:
            return identity
        raise PacketExists(
            f"Wave {wave_id} has packet {stored.packet_id if stored else 'of another wave'}; {identity}"
            " cannot replace it. A packet is final: continue with the stored one."
        )
    tx.journal(
        PacketCompiled(
            digest=digest,
            ordinal=packet.ordinal,
            token_used=packet.token_used,
            token_budget=packet.token_budget,
            facts=packet.facts,
            dropped=packet.dropped,
            drops=dict(packet.drops),
            bands=tuple(
                BandUse(
                    band=band.name,
                    used=band.used,
                    min=band.min_tokens,
                    target=band.target_tokens,
                    max=band.max_tokens,
                    facts=len(band.entries),
                    dropped=band.dropped,
                )
                for band in packet.bands
            ),
            epoch=_epoch_use(packet),
        ),
        session_id=session_id,
        wave_id=wave_id,
        trace_id=trace_id,
        packet_id=identity,
        profile_id=packet.profile_id,
        profile_version=packet.profile_version,
        latency_ms=latency_ms,
    )
    return identity


def _epoch_use(packet: Packet) -> EpochUse | UnsetType:
    epoch = packet.epoch
    if epoch is None:
        return UNSET
    return EpochUse(
        first=epoch.first,
        reason=epoch.reason,
        rendered_tokens=packet.rendered_tokens or 0,
        cached_expected=epoch.cached,
        headroom=epoch.headroom,
    )


_SELECT = (
    "SELECT packet_id, orientation_packets.wave_id, digest_sha256, orientation_packets.created_at,"
    " packet_json FROM orientation_packets"
)


def find(connection: sqlite3.Connection, wave_id: str) -> StoredPacket | None:
    """Read a wave's packet, or None while it has none."""
    row = connection.execute(f"{_SELECT} WHERE wave_id=?", (wave_id,)).fetchone()
    return None if row is None else StoredPacket(*row)


def find_before(
    connection: sqlite3.Connection, session_id: str, ordinal: int
) -> StoredPacket | None:
    """Read the newest packet of the session's waves before ``ordinal``."""
    row = connection.execute(
        f"{_SELECT} JOIN wave_runs USING (wave_id) WHERE session_id=? AND ordinal<?"
        " ORDER BY ordinal DESC LIMIT 1",
        (session_id, ordinal),
    ).fetchone()
    return None if row is None else StoredPacket(*row)


def load(connection: sqlite3.Connection, wave_id: str) -> StoredPacket:
    """Read a wave's packet. Raises :class:`~cockpit.core.errors.NotFound`."""
    stored = find(connection, wave_id)
    if stored is None:
        raise NotFound(f"Wave {wave_id} has no packet: it did not reach Orient.")
    return stored


def select_for_session(connection: sqlite3.Connection, session_id: str) -> list[StoredPacket]:
    """Read the packets of a session in the order of its waves."""
    rows = connection.execute(
        f"{_SELECT} JOIN wave_runs USING (wave_id) WHERE session_id=? ORDER BY ordinal",
        (session_id,),
    )
    return [StoredPacket(*row) for row in rows]


def select_wave_ids(connection: sqlite3.Connection) -> list[str]:
    """Read the ids of every wave that has a packet, by session and place."""
    rows = connection.execute(
        "SELECT wave_id FROM orientation_packets JOIN wave_runs USING (wave_id)"
        " JOIN sessions s USING (session_id) ORDER BY s.created_at, session_id, ordinal"
    )
    return [wave_id for (wave_id,) in rows]

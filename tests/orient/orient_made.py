"""Facts and profiles made by hand, for the tests of Orient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cockpit.core.canonical_json import text_digest
from cockpit.store.context.facts import SessionFact
from cockpit.store.context.profile_model import BANDS, Band, Predicate, Profile, Rule


def fact(
    name: str,
    band: str = "situational",
    *,
    tokens: int = 100,
    outline: int = 0,
    reference: int = 0,
    utility: int = 500_000,
    ordinal: int = 1,
    position: int = 1,
    source_type: str = "made",
    ref: str = "",
    key: str = "",
    pinned: bool = False,
    superseded: bool = False,
) -> SessionFact:
    """A stored fact. Its reference is its own unless ``ref`` says otherwise."""
    return SessionFact(
        f"f-{text_digest(name)[:24]}", source_type, ref or f"made:{name}", band, ordinal, position,
        pinned, superseded, utility, (tokens, outline, reference), key,
    )  # fmt: skip


def many(count: int, band: str = "situational", **known: Any) -> list[SessionFact]:
    """``count`` facts, utility falling by 1,000 from 900,000, in places 1 on."""
    return [
        fact(f"{band}-{i}", band, **{"utility": 900_000 - 1_000 * i, "position": i + 1, **known})
        for i in range(count)
    ]


def profile(
    rooms: Mapping[str, tuple[int, int, int]],
    *,
    total: int = 1_000,
    ranking: str = "utility",
    rules: Sequence[Rule] = (),
) -> Profile:
    """A profile with the bands given as (floor, target, ceiling); the others have no room."""
    return Profile(
        "made",
        1,
        total,
        0,
        "active",
        ranking,  # type: ignore[arg-type]  # tests pass what a person may write
        tuple(Band(name, *rooms.get(name, (0, 0, 0))) for name in BANDS),
        tuple(rules),
    )


def rule(source_type: str, **known: Any) -> Rule:
    """A rule of weight 1 for a source type."""
    plain = Rule(source_type, source_type, Predicate(), 1_000, 0, 0, 0)
    return replace(plain, **known)


def kept(packet: Any, band: str) -> list[tuple[str, str]]:
    """(fact id, level) of a band's entries."""
    return [
        (entry.fact_id, entry.level)
        for found in packet.bands
        if found.name == band
        for entry in found.entries
    ]


def used(packet: Any) -> dict[str, int]:
    """Tokens by band."""
    return {band.name: band.used for band in packet.bands}

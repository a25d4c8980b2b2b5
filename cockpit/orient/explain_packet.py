"""Why each fact is in a packet, shortened, or dropped.

The verdicts are not stored: they are compiled again from the same facts, so that they explain the
decision of a past wave. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cockpit.orient.append_facts import extend_bands
from cockpit.orient.compile_packet import require_known, select_for_packet
from cockpit.orient.epochs import (
    WaveSelection,
    reasons_to_drop,
    recorded_standing,
    select_for_wave,
)
from cockpit.orient.fact_columns import FactColumns, Ints, load_columns
from cockpit.orient.select_facts import KEPT, NO_REASON, Selection
from cockpit.store.context import profiles
from cockpit.store.context.facts import LEVELS, SessionFact
from cockpit.store.context.packets import (
    DIFF,
    NOT_RENDERED,
    POINTED,
    REASONS,
    Overheads,
    Packet,
)
from cockpit.store.context.profile_model import BANDS, Profile

Verdict = Literal["kept", "shortened", "dropped"]


class FactVerdict(Struct, frozen=True):
    """The verdict on one fact.

    ``utility`` is its score under the profile (0 to 8,000,000; 1,000,000 is a full utility with
    weights of 1), ``tokens`` what it takes in the packet, or would take in full if it was dropped.
    ``level`` is empty for a dropped fact. ``reason`` is one of ``pinned, floor, target, utility``
    (why there was room for it) or of the packet's drop reasons.
    """

    fact_id: str
    band: str
    source_type: str
    source_ref: str
    ordinal: int
    utility: int
    tokens: int
    verdict: Verdict
    level: str
    reason: str
    standing: str = ""
    """In an epoch: ``appended`` by this wave, or ``carried`` from the one before."""
    worth: int = 0
    """What it competes with: its score, by its relevance and its age."""


def explain_packet(
    candidates: Sequence[SessionFact] | FactColumns,
    profile: Profile,
    ordinal: int,
    *,
    overheads: Overheads = NOT_RENDERED.overheads,
    band: str = "",
) -> tuple[FactVerdict, ...]:
    """Explain the verdict on every fact, or on those of ``band``, in order of time.

    Raises as ``compile_packet`` does, and ``ValueError`` for an unknown band.
    """
    chosen = select_for_packet(candidates, profile, ordinal, overheads=overheads)
    return tuple(_judge(chosen, _in_band(chosen.columns, band)))


def explain_stored(
    connection: sqlite3.Connection, session_id: str, packet: Packet, *, band: str = ""
) -> tuple[FactVerdict, ...]:
    """Explain the verdict on every fact of a stored packet, or on those of ``band``, in order of time."""
    require_known(packet.algorithm)
    profile = profiles.load(connection, packet.profile_id, packet.profile_version)
    columns = load_columns(connection, session_id, packet.ordinal)
    overheads = packet.overheads
    if packet.epoch is None:
        return explain_packet(columns, profile, packet.ordinal, overheads=overheads, band=band)
    standing = recorded_standing(connection, session_id, packet)
    wave = select_for_wave(columns, profile, packet.ordinal, standing, overheads=overheads)
    at = _in_band(columns, band)
    if wave.fresh is not None:
        return tuple(_judge(wave.fresh, at))
    assert standing.before is not None  # noqa: S101 - it was appended to
    return tuple(_judge_appended(packet, standing.before, wave, at))


def _judge_appended(
    packet: Packet, before: Packet, wave: WaveSelection, at: Ints
) -> list[FactVerdict]:
    """Return the verdicts on facts of an appended packet."""
    columns = wave.columns
    assert wave.appended is not None  # noqa: S101 - the caller has looked
    reasons = reasons_to_drop(columns, wave.appended, extend_bands(columns, before, wave.appended))
    in_force = packet.in_force()
    shown = {entry.fact_id: entry for _, entry in packet.rendered()}
    verdicts = []
    for i in at.tolist():
        verdict = _describe(wave, columns, i)
        entry = shown.get(columns.fact_ids[i])
        if entry is None:
            reason = REASONS[int(reasons[i])] if reasons[i] != NO_REASON else REASONS[0]
            verdicts.append(replace(verdict, reason=reason))
            continue
        force = in_force.get(columns.fact_ids[i])
        last = force[1] if force else entry
        verdicts.append(
            replace(
                verdict,
                verdict="kept" if last.level in ("full", DIFF, POINTED) else "shortened",
                level=last.level,
                tokens=last.tokens,
                reason=KEPT[0] if last.pinned else KEPT[-1],
                standing="appended" if last.added == packet.ordinal else "carried",
            )
        )
    return verdicts


def _in_band(columns: FactColumns, band: str) -> Ints:
    if not band:
        return np.arange(len(columns))
    return np.flatnonzero(columns.band == BANDS.index(band))


def _judge(chosen: Selection, at: Ints) -> list[FactVerdict]:
    """Return the verdicts of a selection on the facts at ``at``."""
    verdicts = []
    for i in at.tolist():
        verdict = _describe(chosen, chosen.columns, i)
        level, dropped_for = int(chosen.level[i]), int(chosen.dropped_for[i])
        if dropped_for == NO_REASON:
            verdict = replace(
                verdict,
                verdict="shortened" if level else "kept",
                level=LEVELS[level],
                tokens=int(chosen.tokens[i]),
                reason=KEPT[int(chosen.kept_for[i])],
            )
        else:
            verdict = replace(verdict, reason=REASONS[dropped_for])
        verdicts.append(verdict)
    return verdicts


def _describe(wave: WaveSelection | Selection, columns: FactColumns, i: int) -> FactVerdict:
    """Return a fact as one that was dropped."""
    return FactVerdict(
        columns.fact_ids[i],
        BANDS[int(columns.band[i])],
        columns.types[int(columns.source_type[i])],
        columns.refs[i],
        int(columns.ordinal[i]),
        int(wave.scores.score[i]),
        int(columns.full[i]),
        "dropped",
        "",
        "",
        worth=int(wave.scores.worth[i]),
    )

"""Why each fact is in a packet, shortened, or dropped.

The verdicts are not stored: they are compiled again from the same facts, so that they explain the
decision of a past wave. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cockpit.orient.compile_packet import ALGORITHM, NOT_RENDERED, load_for, select_for_packet
from cockpit.orient.epoch_inputs import recorded_standing
from cockpit.orient.epochs import Appended, WaveSelection, reasons_to_drop, select_for_wave
from cockpit.orient.fact_columns import FactColumns, Ints
from cockpit.orient.select_facts import KEPT, NO_REASON, Selection
from cockpit.store.context import profiles
from cockpit.store.context.facts import LEVELS, SessionFact
from cockpit.store.context.packets import DIFF, REASONS, Overheads, Packet, detail_of
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
    """In an epoch: ``appended`` by this wave, ``carried`` from the one before, or ``stale`` (carried too,
    though a fresh packet would leave it out or shorten it). Where one begins: ``spent`` for what is
    shortened because it is not likely to be needed whole."""


def explain_packet(
    candidates: Sequence[SessionFact] | FactColumns,
    profile: Profile,
    ordinal: int,
    *,
    algorithm: str = ALGORITHM,
    overheads: Overheads = NOT_RENDERED.overheads,
    band: str = "",
) -> tuple[FactVerdict, ...]:
    """Explain the verdict on every fact, or on those of ``band``, in order of time.

    Raises as ``compile_packet`` does, and ``ValueError`` for an unknown band.
    """
    chosen = select_for_packet(
        candidates, profile, ordinal, algorithm=algorithm, overheads=overheads
    )
    return tuple(_judge(chosen, _in_band(chosen.columns, band)))


def explain_stored(
    connection: sqlite3.Connection, session_id: str, packet: Packet, *, band: str = ""
) -> tuple[FactVerdict, ...]:
    """Explain the verdict on every fact of a stored packet, or on those of ``band``, in order of time."""
    profile = profiles.load(connection, packet.profile_id, packet.profile_version)
    columns = load_for(connection, session_id, packet.ordinal, packet.algorithm)
    standing = recorded_standing(connection, session_id, packet)
    if standing is None:
        return explain_packet(
            columns,
            profile,
            packet.ordinal,
            algorithm=packet.algorithm,
            overheads=packet.overheads,
            band=band,
        )
    selection = select_for_wave(
        columns,
        profile,
        packet.ordinal,
        standing,
        overheads=packet.overheads,
        algorithm=packet.algorithm,
    )
    judged = _judge(selection.fresh, _in_band(columns, band))
    if selection.appended is None:
        spent = frozenset(selection.epoch.spent.ids)
        return tuple(
            replace(each, standing="spent")
            if each.verdict == "shortened" and each.fact_id in spent
            else each
            for each in judged
        )
    return tuple(_judge_in_epoch(packet, selection, selection.appended, judged))


def _judge_in_epoch(
    packet: Packet, selection: WaveSelection, appended: Appended, judged: Sequence[FactVerdict]
) -> Iterator[FactVerdict]:
    """Yield the verdicts of an appended packet; ``judged`` are those of a fresh one."""
    columns = selection.fresh.columns
    reasons = reasons_to_drop(selection, appended)
    places = zip(columns.fact_ids, columns.ordinal.tolist(), strict=True)
    rows = {place: i for i, place in enumerate(places)}
    kept_for = {int(row): int(appended.chosen.kept_for[at]) for at, row in enumerate(appended.rows)}
    in_force = packet.in_force()
    shown = {entry.fact_id: entry for _, entry in packet.rendered()}
    for fresh in judged:
        row = rows[fresh.fact_id, fresh.ordinal]
        entry = shown.get(fresh.fact_id)
        if entry is None:
            reason = REASONS[int(reasons[row])]
            yield replace(fresh, verdict="dropped", level="", reason=reason)
            continue
        force = in_force.get(fresh.fact_id)
        last = force[1] if force else entry
        is_stale = (
            force is None
            or fresh.verdict == "dropped"
            or (fresh.verdict == "shortened" and detail_of(last) == 0)
        )
        is_new = last.added == packet.ordinal
        reason = (
            KEPT[kept_for[row]] if is_new and kept_for.get(row, NO_REASON) >= 0 else fresh.reason
        )
        yield replace(
            fresh,
            verdict="kept" if last.level in ("full", DIFF) else "shortened",
            level=last.level,
            tokens=last.tokens,
            reason=reason,
            standing="appended" if is_new else "stale" if is_stale else "carried",
        )


def _in_band(columns: FactColumns, band: str) -> Ints:
    if not band:
        return np.arange(len(columns))
    return np.flatnonzero(columns.band == BANDS.index(band))


def _judge(chosen: Selection, at: Ints) -> list[FactVerdict]:
    """Return the verdicts of a selection on the facts at ``at``."""
    columns = chosen.columns
    verdicts: list[FactVerdict] = []
    for i, fact_band, kind, wave, score, full, taken, level, kept_for, dropped_for in zip(
        at.tolist(),
        columns.band[at].tolist(),
        columns.source_type[at].tolist(),
        columns.ordinal[at].tolist(),
        chosen.score[at].tolist(),
        columns.full[at].tolist(),
        chosen.tokens[at].tolist(),
        chosen.level[at].tolist(),
        chosen.kept_for[at].tolist(),
        chosen.dropped_for[at].tolist(),
        strict=True,
    ):
        dropped = dropped_for != NO_REASON
        verdict: Verdict = "dropped" if dropped else "shortened" if level else "kept"
        verdicts.append(
            FactVerdict(
                columns.fact_ids[i],
                BANDS[fact_band],
                columns.types[kind],
                columns.refs[i],
                wave,
                score,
                full if dropped else taken,
                verdict,
                "" if dropped else LEVELS[level],
                REASONS[dropped_for] if dropped else KEPT[kept_for],
            )
        )
    return verdicts

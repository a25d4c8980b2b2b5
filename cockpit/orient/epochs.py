"""Packets of a session's waves in epochs: each appends to the one before, until one is compiled afresh.

A prompt that begins with all of the prompt before is read from the provider's cache. So within an epoch what
was rendered stays as it is, and new facts come after it. An epoch ends when the wave's additions do not fit,
when the cache is gone anyway and a fresh packet is smaller, or when the profile or the system text changes.
See ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cockpit.orient.append_facts import (
    OPENING,
    Appended,
    CountChanges,
    append_facts,
    changes_head,
    extend_bands,
    find_changes,
    find_new,
    flag_heads,
    list_pointable,
)
from cockpit.orient.compile_packet import build_packet, make_packet
from cockpit.orient.fact_columns import FactColumns, Ints
from cockpit.orient.relate_facts import LoadTexts, relate_facts
from cockpit.orient.score_facts import Scores, score_facts
from cockpit.orient.select_facts import (
    BUDGET,
    FULL,
    NO_REASON,
    SITUATIONAL,
    Headroom,
    Selection,
    is_crowded,
    is_pinned,
    select_facts,
)
from cockpit.store.context import facts, packets
from cockpit.store.context.packet_epoch import APPENDED, CachePrices, Epoch
from cockpit.store.context.packets import NOT_RENDERED, Overheads, Packet, Rendering
from cockpit.store.context.profile_model import Profile, check

PROTECTED_WAVES = 3
"""Waves, the current one included, whose facts give no room away."""
SHARES = range(10, 61, 5)
"""Percent of the room that a fresh packet may leave free."""
AIM_PERCENT = 90
"""The price of the session at the end of the next epoch, of a transcript's, that decides the share."""


def _no_texts(_fact_ids: Sequence[str]) -> dict[str, facts.FactText]:
    return {}


class Standing(Struct, frozen=True):
    """What a wave's packet stands on, beside its facts."""

    before: Packet | None
    """The packet of the wave before it; None for the first of a session."""
    head: str
    """The digest of the tools as they are described."""
    cold: bool
    """Whether the session was idle for longer than the provider's cache lives."""
    count_changes: CountChanges
    load_texts: LoadTexts = _no_texts
    prices: CachePrices | None = None
    """What the session's model costs with its provider's cache; None: as the profile says."""


class WaveSelection(Struct, frozen=True):
    """How a wave's packet came to be: appended to the one before, or selected afresh."""

    columns: FactColumns
    scores: Scores
    epoch: Epoch
    appended: Appended | None = None
    fresh: Selection | None = None


def recorded_standing(connection: sqlite3.Connection, session_id: str, packet: Packet) -> Standing:
    """Return what a stored packet stood on, as it keeps it."""
    epoch = packet.epoch
    if epoch is None:
        return Standing(None, "", False, lambda _pairs, _waves, _shown: ())
    before = packets.find_before(connection, session_id, packet.ordinal)
    return Standing(
        before.packet if before else None,
        epoch.head,
        epoch.cold,
        lambda _pairs, _waves, _shown: epoch.changes,
        partial(facts.load_texts, connection),
        epoch.prices,
    )


def compile_wave(
    columns: FactColumns,
    profile: Profile,
    ordinal: int,
    standing: Standing,
    *,
    rendering: Rendering = NOT_RENDERED,
) -> Packet:
    """Compile the packet of wave ``ordinal`` (1-based) in its epoch. Pure.

    Raises as :func:`~cockpit.orient.compile_packet.compile_packet` does.
    """
    wave = select_for_wave(columns, profile, ordinal, standing, overheads=rendering.overheads)
    if wave.fresh is not None:
        packet = build_packet(wave.fresh, profile, ordinal, rendering, wave.epoch.changes)
    else:
        assert wave.appended is not None  # noqa: S101 - one of both is there
        assert standing.before is not None  # noqa: S101 - it was appended to
        entries = extend_bands(columns, standing.before, wave.appended)
        reasons = reasons_to_drop(columns, wave.appended, entries)
        packet = make_packet(
            profile, ordinal, rendering, columns, entries, wave.appended.used, reasons
        )
    return dataclasses.replace(packet, epoch=wave.epoch)


def reasons_to_drop(
    columns: FactColumns, appended: Appended, entries: Sequence[Sequence[packets.Entry]]
) -> Ints:
    """Return why each fact is missing from an appended packet; what an epoch began without lacked room."""
    shown = {entry.fact_id for of_band in entries for entry in of_band}
    missing = np.array([name not in shown for name in columns.fact_ids], np.bool_)
    reasons = np.where(appended.dropped_for == NO_REASON, BUDGET, appended.dropped_for)
    return np.where(missing, reasons, NO_REASON)


def select_for_wave(
    columns: FactColumns,
    profile: Profile,
    ordinal: int,
    standing: Standing,
    *,
    overheads: Overheads = NOT_RENDERED.overheads,
) -> WaveSelection:
    """Append the wave's facts, or select afresh: this function alone decides that an epoch ends."""
    check(profile)
    before = standing.before
    prices = standing.prices or profile.cache
    epoch = Epoch(
        ordinal,
        "first",
        0,
        before.digest if before else "",
        standing.head,
        standing.cold,
        transcript=overheads.total - overheads.answer + int(columns.full.sum()),
        prices=standing.prices,
    )
    if before is None or before.epoch is None:
        return _begin(columns, profile, standing, overheads, epoch, None)
    epoch = replace(epoch, **_add_up_prices(before, before.epoch, prices))
    new = find_new(columns, before)
    if (before.profile_id, before.profile_digest) != (profile.profile_id, profile.digest):
        return _begin(columns, profile, standing, overheads, replace(epoch, reason="profile"), new)
    if standing.head != before.epoch.head or changes_head(columns, before, new):
        return _begin(columns, profile, standing, overheads, replace(epoch, reason="head"), new)
    scores = score_facts(columns, profile, ordinal)
    replaced, changes = find_changes(columns, before, new, standing.count_changes)
    appended = append_facts(
        columns, scores, profile, overheads, before, ordinal, new, replaced, changes
    )
    if appended is None:
        return _begin(columns, profile, standing, overheads, replace(epoch, reason="budget"), new)
    if standing.cold:
        afresh = replace(epoch, reason="cold")
        wave = _begin(columns, profile, standing, overheads, afresh, new)
        if wave.fresh is not None and sum(wave.fresh.used) < sum(appended.used):
            return wave
    return WaveSelection(
        columns,
        scores,
        replace(
            epoch,
            first=before.epoch.first,
            reason=APPENDED,
            begun=before.epoch.begun or before.token_used,
            changes=changes,
        ),
        appended,
    )


def _add_up_prices(before: Packet, last: Epoch, prices: CachePrices) -> dict[str, int]:
    """Return what the session has cost until now, and what its transcript has."""
    tokens = before.rendering.tokens or before.token_used - before.overheads.answer
    cached = min(last.cached, tokens)
    shown = last.transcript_before
    return {
        "paid": last.paid + prices.read * cached + prices.write * (tokens - cached),
        "transcript_before": last.transcript,
        "transcript_paid": last.transcript_paid
        + prices.read * shown
        + prices.write * (last.transcript - shown),
    }


def _begin(
    columns: FactColumns,
    profile: Profile,
    standing: Standing,
    overheads: Overheads,
    epoch: Epoch,
    new: Ints | None,
) -> WaveSelection:
    """Select afresh; ``new`` are the facts that the packet before lacks, None in a session's first wave."""
    ordinal = epoch.first
    headroom = None
    if new is not None and standing.before is not None:
        room = _room_to_share(columns, profile, overheads)
        growth = _growth(columns, standing.before, ordinal, new)
        share = SHARES[0]
        if epoch.reason == "budget":
            head = overheads.tools + int(columns.full[_opens(columns)].sum())
            share = choose_share(standing.prices or profile.cache, epoch, head, room, growth)
        epoch = replace(epoch, headroom=room * share // 100, share=share)
        protected = columns.ordinal > ordinal - PROTECTED_WAVES
        headroom = Headroom(epoch.headroom, protected)
    select = partial(select_facts, columns, profile, ordinal, overheads)
    chosen = select(headroom=headroom)
    if is_crowded(chosen):
        relevance = relate_facts(columns, standing.load_texts)
        chosen = select(relevance=relevance, headroom=headroom)
    changes = standing.count_changes((), _waves_to_point(chosen), ())
    return WaveSelection(
        columns, chosen.scores, replace(epoch, changes=tuple(changes)), fresh=chosen
    )


def _waves_to_point(chosen: Selection) -> list[list[str]]:
    """Return the ids of facts that are whole, wave by wave, without what is never pointed."""
    columns = chosen.columns
    whole = np.flatnonzero(chosen.level == FULL)
    waves: dict[int, list[int]] = {}
    for i in whole.tolist():
        waves.setdefault(int(columns.ordinal[i]), []).append(i)
    return [list_pointable(columns, places) for _, places in sorted(waves.items())]


def _opens(columns: FactColumns) -> Ints:
    """Return the places of system text and task."""
    opening = np.array([name == OPENING for name in columns.types], np.bool_)
    heads = flag_heads(columns)
    if len(columns):
        heads = heads | opening[columns.source_type]
    return np.flatnonzero(heads & ~columns.superseded)


def _room_to_share(columns: FactColumns, profile: Profile, overheads: Overheads) -> int:
    """Return the room for facts that are not pinned: in the budget, and in the band that waves append to."""
    pinned = is_pinned(columns)
    tokens = np.where(columns.short, np.minimum(columns.full, columns.outline), columns.full)
    held = int(tokens[pinned].sum()) + overheads.total
    in_band = int(tokens[pinned & (columns.band == SITUATIONAL)].sum())
    ceiling = profile.bands[SITUATIONAL].max_tokens - in_band
    return max(min(profile.total_token_budget - held, ceiling), 0)


def _growth(columns: FactColumns, before: Packet, ordinal: int, new: Ints) -> int:
    """Return by how many tokens a wave of the epoch grew, this one included; at least 1."""
    assert before.epoch is not None  # noqa: S101 - the caller has looked
    grown = before.token_used - before.epoch.begun if before.epoch.begun else 0
    grown += int(columns.full[new].sum())
    return max(grown // (ordinal - before.epoch.first), 1)


def choose_share(prices: CachePrices, epoch: Epoch, head: int, room: int, growth: int) -> int:
    """Return the smallest share of ``room``, in percent, that a fresh packet leaves free at a fair price.

    That is where the session so far and one more epoch cost at most :data:`AIM_PERCENT` of what a growing
    transcript of them does; ``head`` are the tokens that the cache still has, ``growth`` those of a wave.
    """
    for share in SHARES:
        left = room * share // 100
        waves = max(left // growth, 1)
        carried = waves * (waves - 1) // 2 * growth
        begun = head + room - left
        ours = prices.read * (head + (waves - 1) * begun + carried)
        ours += prices.write * (room - left + (waves - 1) * growth)
        theirs = prices.read * (waves * epoch.transcript_before + carried)
        theirs += prices.write * waves * growth
        if (epoch.paid + ours) * 100 <= AIM_PERCENT * (epoch.transcript_paid + theirs):
            return share
    return SHARES[-1]

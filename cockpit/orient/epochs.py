"""Packets of a session's waves in epochs: each appends to the one before, until a fresh one is cheaper.

A prompt that begins with all of the prompt before is read from the provider's cache. So within an epoch
what was rendered stays as it is, new facts come after it, and a changed file comes as its difference. A
packet is compiled afresh when there is no room to append, when the cache is gone anyway, and when carrying
what a fresh packet would leave out has cost as much as a fresh packet would: whoever does not know how long
a session lasts pays at most twice what one pays who does. See ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cockpit.core.fenced_text import HEAD_BANDS, MESSAGE_SOURCES
from cockpit.orient.compile_packet import (
    ALGORITHM,
    NOT_RENDERED,
    build_packet,
    find_algorithm,
)
from cockpit.orient.fact_columns import FactColumns, Flags, Ints, take_columns
from cockpit.orient.select_facts import NO_REASON, PinnedOverBudget, Selection, select_facts
from cockpit.orient.standing import Standing
from cockpit.store.context.facts import LEVELS
from cockpit.store.context.packet_epoch import APPENDED, Change, Epoch
from cockpit.store.context.packets import (
    DIFF,
    GONE,
    REASONS,
    Entry,
    Overheads,
    Packet,
    PacketBand,
    Rendering,
    detail_of,
)
from cockpit.store.context.profile_model import BANDS, Profile, check, scale

OPENING = "task"
"""The source of what opens the messages of a prompt."""
_HEAD = tuple(BANDS.index(name) for name in HEAD_BANDS)
_MOST_CHANGES = 256
"""Differences that are worked out in one wave; further facts are shown whole."""
_BUDGET = REASONS.index("budget")


@dataclass(frozen=True, slots=True)
class Appended:
    """What a wave adds to the packet before it.

    ``rows`` are places in the columns, and ``chosen`` the selection among them. ``entries`` are the new
    ones by band, ``used`` the tokens by band, overheads and all that is carried included.
    """

    rows: Ints
    chosen: Selection
    entries: Mapping[str, tuple[Entry, ...]]
    used: tuple[int, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class WaveSelection:
    """How a wave's packet came to be: the fresh selection, and what was appended in its place."""

    fresh: Selection
    appended: Appended | None
    epoch: Epoch


def compile_wave(
    columns: FactColumns,
    profile: Profile,
    ordinal: int,
    standing: Standing,
    *,
    rendering: Rendering = NOT_RENDERED,
    algorithm: str = ALGORITHM,
) -> Packet:
    """Compile the packet of wave ``ordinal`` (1-based) in its epoch. Pure.

    Raises as :func:`~cockpit.orient.compile_packet.compile_packet` does.
    """
    selection = select_for_wave(
        columns, profile, ordinal, standing, overheads=rendering.overheads, algorithm=algorithm
    )
    fresh = build_packet(selection.fresh, profile, ordinal, rendering)
    if selection.appended is None or standing.before is None:
        return replace(fresh, epoch=selection.epoch)
    return replace(_append_to(fresh, standing.before, columns, selection), epoch=selection.epoch)


def select_for_wave(
    columns: FactColumns,
    profile: Profile,
    ordinal: int,
    standing: Standing,
    *,
    overheads: Overheads = NOT_RENDERED.overheads,
    algorithm: str = ALGORITHM,
) -> WaveSelection:
    """Select facts for :func:`compile_wave`, and say whether the wave begins an epoch."""
    check(profile)
    way = find_algorithm(algorithm)
    before = standing.before
    epoch = Epoch(ordinal, "first", before.digest if before else "", standing.head, standing.cold)
    if before is None or before.epoch is None:
        return WaveSelection(select_facts(columns, profile, ordinal, way, overheads), None, epoch)
    fresh = _select_with_room_to_append(columns, profile, ordinal, algorithm, overheads)
    if before.profile_digest != profile.digest or before.profile_id != profile.profile_id:
        return WaveSelection(fresh, None, replace(epoch, reason="profile"))
    new = _new_rows(columns, before)
    if standing.head != before.epoch.head or _changes_head(columns, new, before):
        return WaveSelection(fresh, None, replace(epoch, reason="head"))
    appended = _append(columns, new, profile, ordinal, standing, algorithm, overheads, fresh)
    if appended is None:
        return WaveSelection(fresh, None, replace(epoch, reason="budget"))
    stale = max(sum(appended.used) - sum(fresh.used), 0)
    anew = _tokens_to_send(fresh)
    cache = profile.cache
    rent = before.epoch.rent + cache.read * stale
    if stale and standing.cold:
        return WaveSelection(fresh, None, replace(epoch, reason="cold", stale=stale, fresh=anew))
    if stale and rent >= cache.write * anew:
        return WaveSelection(fresh, None, replace(epoch, reason="stale", stale=stale, fresh=anew))
    continued = replace(
        epoch, first=before.epoch.first, reason=APPENDED, stale=stale, fresh=anew, rent=rent,
        changes=appended.changes,
    )  # fmt: skip
    return WaveSelection(fresh, appended, continued)


def _select_with_room_to_append(
    columns: FactColumns, profile: Profile, ordinal: int, algorithm: str, overheads: Overheads
) -> Selection:
    """Select as for the first packet of a later epoch: with room left to append.

    Where what is pinned needs that room, it gets it.
    """
    way = find_algorithm(algorithm)
    try:
        return select_facts(columns, _leave_room(profile), ordinal, way, overheads)
    except PinnedOverBudget:
        return select_facts(columns, profile, ordinal, way, overheads)


def _leave_room(profile: Profile) -> Profile:
    """Return the profile with a part of its budget, and the same part of its floors, targets and ceilings."""
    return scale(profile, max(profile.total_token_budget * profile.cache.refill // 1_000, 1))


def _new_rows(columns: FactColumns, before: Packet) -> Ints:
    """Return the places of facts that the packet before does not show, or not as far as it must.

    These are facts that this wave saw first or was granted again, and facts that are pinned now.
    """
    shown = before.in_force()
    offered = ~columns.superseded & ~columns.repeated
    offered &= (columns.ordinal > before.ordinal) | columns.pinned
    places = []
    for i in np.flatnonzero(offered).tolist():
        held = shown.get(columns.fact_ids[i])
        if held is not None:
            detail = detail_of(held[1])
            enough = int(columns.pinned[i] and columns.short[i])
            if detail == 0 or (columns.ordinal[i] <= before.ordinal and detail <= enough):
                continue
        places.append(i)
    return np.array(places, np.int64)


def _changes_head(columns: FactColumns, new: Ints, before: Packet) -> bool:
    """Whether the system text or what opens the messages would be another one."""
    if np.isin(columns.band[new], _HEAD).any():
        return True
    if any(columns.types[code] == OPENING for code in columns.source_type[new].tolist()):
        return True
    live = _live_ids(columns)
    return any(
        band in HEAD_BANDS and entry.fact_id not in live
        for band, entry in before.in_force().values()
    )


def _live_ids(columns: FactColumns) -> frozenset[str]:
    return frozenset(columns.fact_ids[i] for i in np.flatnonzero(~columns.superseded).tolist())


def _append(
    columns: FactColumns,
    new: Ints,
    profile: Profile,
    ordinal: int,
    standing: Standing,
    algorithm: str,
    overheads: Overheads,
    fresh: Selection,
) -> Appended | None:
    """Return what to add to the packet before, or None where there is no room for what is worth it."""
    before = standing.before
    assert before is not None  # noqa: S101 - the caller has looked
    replaced = _replaced_by(columns, new, before)
    pairs = [(columns.fact_ids[i], replaced[i]) for i in new.tolist() if i in replaced]
    changes = tuple(standing.count_changes(pairs[:_MOST_CHANGES]))
    short = {change.fact_id: change.tokens for change in changes}
    offered = take_columns(columns, new)
    whole = offered.full
    as_diff = np.array([short.get(identity, -1) for identity in offered.fact_ids], np.int64)
    is_diff = (as_diff >= 0) & (as_diff < whole)
    offered = replace(offered, full=np.where(is_diff, as_diff, whole))
    held = [
        next(b.used for b in before.bands if b.name == name) - before.overheads.in_band(name)
        for name in BANDS
    ]
    try:
        chosen = select_facts(offered, profile, ordinal, find_algorithm(algorithm), overheads, held)
    except PinnedOverBudget:
        return None
    if _worth(offered, whole, chosen.level) < _worth(offered, whole, fresh.level[new]):
        return None
    entries: dict[str, list[Entry]] = {name: [] for name in BANDS}
    for at, row in enumerate(new.tolist()):
        level = int(chosen.level[at])
        if level < 0:
            continue
        entries[BANDS[int(columns.band[row])]].append(
            Entry(
                columns.fact_ids[row],
                DIFF if level == 0 and is_diff[at] else LEVELS[level],
                int(chosen.tokens[at]),
                bool(columns.pinned[row]),
                int(columns.ordinal[row]),
                ordinal,
                replaced.get(row, ""),
            )
        )
    used = list(chosen.used)
    for band, entry in _gone(columns, before, entries, ordinal):
        entries[band].append(entry)
        used[BANDS.index(band)] += entry.tokens
    if sum(used) > profile.total_token_budget:
        return None
    return Appended(
        new, chosen, {name: tuple(added) for name, added in entries.items()}, tuple(used), changes
    )


def _worth(columns: FactColumns, whole: Ints, level: Ints) -> int:
    """Sum the tokens of facts at their levels, whole texts counted as such."""
    tokens = np.select(
        [level == 0, level == 1, level == 2], [whole, columns.outline, columns.reference], 0
    )
    return int(tokens.sum())


def _replaced_by(columns: FactColumns, new: Ints, before: Packet) -> dict[int, str]:
    """Return for places in ``new`` the fact of the packet before that each replaces.

    That is the one that stands there in full for the same source under the same key, and is superseded.
    """
    rows = {identity: i for i, identity in enumerate(columns.fact_ids)}
    slots: dict[tuple[int, int], str] = {}
    for identity, (_, entry) in before.in_force().items():
        i = rows.get(identity)
        if i is None or not columns.superseded[i] or detail_of(entry) != 0:
            continue
        if columns.dedupe_key[i] != columns.no_key and _is_fenced(columns, i):
            slots[int(columns.dedupe_key[i]), int(columns.source_ref[i])] = identity
    return {
        i: slots[slot]
        for i in new.tolist()
        if (slot := (int(columns.dedupe_key[i]), int(columns.source_ref[i]))) in slots
    }


def _is_fenced(columns: FactColumns, i: int) -> bool:
    return columns.types[int(columns.source_type[i])] not in (*MESSAGE_SOURCES, OPENING, "exchange")


def _gone(
    columns: FactColumns, before: Packet, added: Mapping[str, Sequence[Entry]], ordinal: int
) -> list[tuple[str, Entry]]:
    """Return lines that say which facts above hold no longer, where no entry replaces them."""
    rows = {identity: i for i, identity in enumerate(columns.fact_ids)}
    replaced = {entry.base for entries in added.values() for entry in entries}
    lines = []
    for identity, (band, entry) in before.in_force().items():
        i = rows.get(identity)
        if i is None or not columns.superseded[i] or identity in replaced:
            continue
        tokens = 16 + len(columns.refs[i]) // 2
        gone = Entry(identity, GONE, tokens, False, entry.ordinal, ordinal, identity)
        lines.append((band, gone))
    return lines


def _tokens_to_send(fresh: Selection) -> int:
    """Count the tokens of a fresh packet that no cache has: all but the system text and the task."""
    columns = fresh.columns
    opening = np.array([name == OPENING for name in columns.types], np.bool_)
    cached: Flags = np.isin(columns.band, _HEAD)
    if len(columns):
        cached |= opening[columns.source_type]
    return int(fresh.tokens[(fresh.level >= 0) & ~cached].sum())


def _append_to(
    fresh: Packet, before: Packet, columns: FactColumns, selection: WaveSelection
) -> Packet:
    """Return the packet before with the wave's entries behind its own."""
    appended = selection.appended
    assert appended is not None  # noqa: S101 - the caller has looked
    pinned = {columns.fact_ids[i] for i in np.flatnonzero(columns.pinned).tolist()}
    bands = []
    shown: set[str] = set()
    for limits, old, used in zip(fresh.bands, before.bands, appended.used, strict=True):
        carried = tuple(
            entry
            if entry.pinned == (entry.fact_id in pinned)
            else replace(entry, pinned=not entry.pinned)
            for entry in old.entries
        )
        entries = (*carried, *appended.entries[limits.name])
        shown.update(entry.fact_id for entry in entries)
        bands.append(replace(limits, used=used, entries=entries))
    dropped_for = reasons_to_drop(selection, appended)
    missing = np.fromiter(
        (identity not in shown for identity in columns.fact_ids), np.bool_, len(columns)
    )
    lost = np.bincount(columns.band[missing], minlength=len(BANDS)).tolist()
    reasons = np.bincount(dropped_for[missing], minlength=len(REASONS)).tolist()
    return replace(
        fresh,
        token_used=sum(appended.used),
        bands=tuple(
            PacketBand(
                band.name, band.min_tokens, band.target_tokens, band.max_tokens, band.used, count,
                band.entries,
            )
            for band, count in zip(bands, lost, strict=True)
        ),
        drops=tuple(
            (reason, count) for reason, count in zip(REASONS, reasons, strict=True) if count
        ),
        quality_ppm=appended.chosen.quality_ppm,
    )  # fmt: skip


def reasons_to_drop(selection: WaveSelection, appended: Appended) -> Ints:
    """Return why each fact would be missing: a new one by its own selection, others by the fresh one."""
    reasons = np.where(
        selection.fresh.dropped_for == NO_REASON, _BUDGET, selection.fresh.dropped_for
    )
    own = appended.chosen.dropped_for
    reasons[appended.rows] = np.where(own == NO_REASON, _BUDGET, own)
    return reasons

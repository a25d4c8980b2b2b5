"""Packets of a session's waves in epochs: each appends to the one before, until a fresh one is cheaper.

A prompt that begins with all of the prompt before is read from the provider's cache. So within an epoch
what was rendered stays as it is, new facts come after it, and a changed file comes as its difference. A
packet is compiled afresh when there is no room to append, when the cache is gone anyway, and when carrying
what a fresh packet would leave out has cost as much as a fresh packet would: whoever does not know how long
a session lasts pays at most twice what one pays who does. See ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.fenced_text import FENCED_IN_HEAD_BANDS, HEAD_BANDS, MESSAGE_SOURCES
from cockpit.orient.compile_packet import (
    ALGORITHM,
    NOT_RENDERED,
    build_packet,
    find_algorithm,
)
from cockpit.orient.epoch_inputs import Standing
from cockpit.orient.fact_columns import FactColumns, Flags, Ints, take_columns
from cockpit.orient.select_facts import (
    NO_REASON,
    Algorithm,
    PinnedOverBudget,
    Selection,
    select_facts,
)
from cockpit.orient.spent_facts import NO_SPENT, SpentFlags, condense, flag_spent, restore_levels
from cockpit.store.context.facts import LEVELS
from cockpit.store.context.packet_epoch import APPENDED, CachePrices, Change, Epoch
from cockpit.store.context.packets import (
    DIFF,
    GONE,
    REASONS,
    Entry,
    Overheads,
    Packet,
    Rendering,
    detail_of,
)
from cockpit.store.context.profile_model import BANDS, Profile, check, scale

OPENING = "task"
"""The source of what opens the messages of a prompt."""
UNFENCED = (*MESSAGE_SOURCES, OPENING, "exchange")
_IS_HEAD = np.array([name in HEAD_BANDS for name in BANDS], np.bool_)
MOST_CHANGES = 256
"""Differences that are worked out in one wave; further facts are shown whole."""
ROOM, _ROOM_BEFORE = 3, 6
"""Quarters of the room to append that balances prices: with what is spent condensed, and without."""
_BUDGET = REASONS.index("budget")


class Appended(Struct, frozen=True):
    """What a wave adds to the packet before it.

    ``rows`` are places in the columns, and ``chosen`` the selection among them. ``entries`` are the new
    ones by band, ``used`` the tokens by band, overheads and all that is carried included.
    """

    rows: Ints
    chosen: Selection
    entries: Mapping[str, tuple[Entry, ...]]
    used: tuple[int, ...]


class WaveSelection(Struct, frozen=True):
    """How a wave's packet came to be: the fresh selection, and what was appended in its place."""

    fresh: Selection
    appended: Appended | None
    epoch: Epoch


class _Wave(Struct, frozen=True):
    """What a wave in an epoch is compiled from."""

    columns: FactColumns
    profile: Profile
    ordinal: int
    way: Algorithm
    overheads: Overheads
    before: Packet
    shown: Mapping[str, tuple[str, Entry]]
    """What the packet before says, by fact id."""
    prices: CachePrices
    spent: SpentFlags
    explains: bool

    def select(self, profile: Profile) -> Selection:
        offered, level = condense(self.columns, self.spent)
        chosen = select_facts(
            offered, profile, self.ordinal, self.way, self.overheads, explains=self.explains
        )
        return restore_levels(chosen, self.columns, level, self.spent)


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
        *(columns, profile, ordinal, standing),
        overheads=rendering.overheads,
        algorithm=algorithm,
        explains=False,
    )
    appends = selection.appended is not None and standing.before is not None
    packet = build_packet(selection.fresh, profile, ordinal, rendering, has_entries=not appends)
    if selection.appended is not None and standing.before is not None:
        packet = _append_to(packet, standing.before, selection, selection.appended)
    return dataclasses.replace(packet, epoch=selection.epoch)


def select_for_wave(
    columns: FactColumns,
    profile: Profile,
    ordinal: int,
    standing: Standing,
    *,
    overheads: Overheads = NOT_RENDERED.overheads,
    algorithm: str = ALGORITHM,
    explains: bool = True,
) -> WaveSelection:
    """Select facts for :func:`compile_wave`, and decide whether the wave begins an epoch.

    Without ``explains`` the selections need not say why facts are kept.
    """
    check(profile)
    way = find_algorithm(algorithm)
    before = standing.before
    previous = before.digest if before else ""
    epoch = Epoch(
        ordinal, "first", 0, previous, standing.head, standing.cold, prices=standing.prices
    )
    if before is None or before.epoch is None:
        fresh = select_facts(columns, profile, ordinal, way, overheads, explains=explains)
        return WaveSelection(fresh, None, epoch)
    prices = standing.prices or profile.cache
    spent = standing.find_spent(columns, ordinal) if way.condenses else NO_SPENT
    epoch = replace(epoch, spent=spent)
    wave = _Wave(
        *(columns, profile, ordinal, way, overheads, before),
        before.in_force(),
        prices,
        flag_spent(columns, spent),
        explains,
    )
    new = _new_rows(wave)
    fresh = _select_with_room_to_append(wave, new)
    if (before.profile_id, before.profile_digest) != (profile.profile_id, profile.digest):
        return WaveSelection(fresh, None, replace(epoch, reason="profile"))
    if standing.head != before.epoch.head or _changes_head(wave, new):
        return WaveSelection(fresh, None, replace(epoch, reason="head"))
    replaced = _find_replaced(wave, new)
    pairs = [(columns.fact_ids[row], base) for row, base in replaced.items()]
    epoch = replace(epoch, changes=tuple(standing.count_changes(pairs[:MOST_CHANGES])))
    appended = _append(wave, new, replaced, epoch.changes, fresh)
    if appended is None:
        return WaveSelection(fresh, None, replace(epoch, reason="budget"))
    stale = max(sum(appended.used) - sum(fresh.used), 0)
    anew = _tokens_to_send(fresh)
    epoch = replace(epoch, stale=stale, fresh=anew)
    rent = before.epoch.rent + prices.read * stale
    if stale and standing.cold:
        return WaveSelection(fresh, None, replace(epoch, reason="cold"))
    if stale and rent >= prices.write * anew:
        return WaveSelection(fresh, None, replace(epoch, reason="stale"))
    begun = before.epoch.begun or before.token_used
    epoch = replace(epoch, first=before.epoch.first, reason=APPENDED, begun=begun, rent=rent)
    return WaveSelection(fresh, appended, epoch)


def _select_with_room_to_append(wave: _Wave, new: Ints) -> Selection:
    """Select as for the first packet of a later epoch: with room left to append.

    That room is a part of what overheads, pinned facts and new facts leave: what was only just read is not
    dropped for it. How much depends on how fast the epoch that ends has grown.
    """
    profile, columns = wave.profile, wave.columns
    stays = columns.pinned & ~columns.superseded
    stays[new] = True
    tokens = np.where(columns.short, np.minimum(columns.full, columns.outline), columns.full)
    taken = wave.overheads.total + int(tokens[stays].sum())
    room = max(profile.total_token_budget - taken, 0)
    budget = profile.total_token_budget - wave.prices.room_to_append(
        room, _growth(wave, new), ROOM if wave.way.condenses else _ROOM_BEFORE
    )
    try:
        return wave.select(scale(profile, max(budget, 1)))
    except PinnedOverBudget:
        return wave.select(profile)


def _growth(wave: _Wave, new: Ints) -> int:
    """Return by how many tokens a wave of the epoch grew, this one included; at least 1."""
    before = wave.before
    assert before.epoch is not None  # noqa: S101 - the caller has looked
    grown = before.token_used - before.epoch.begun if before.epoch.begun else 0
    grown += int(wave.columns.full[new].sum())
    return max(grown // (wave.ordinal - before.epoch.first), 1)


def _new_rows(wave: _Wave) -> Ints:
    """Return the places of facts that the packet before does not show, or not as far as it must.

    These are facts that this wave saw first or was granted again, and facts that are pinned now.
    """
    columns, before = wave.columns, wave.before
    offered = ~columns.superseded & ~columns.repeated
    offered &= (columns.ordinal > before.ordinal) | columns.pinned
    places = []
    for i in np.flatnonzero(offered).tolist():
        held = wave.shown.get(columns.fact_ids[i])
        if held is not None:
            detail = detail_of(held[1])
            enough = int(columns.pinned[i] and columns.short[i])
            if detail == 0 or (columns.ordinal[i] <= before.ordinal and detail <= enough):
                continue
        places.append(i)
    return np.array(places, np.int64)


def _changes_head(wave: _Wave, new: Ints) -> bool:
    """Whether the system text or what opens the messages would be another one."""
    columns, heads = wave.columns, _flag_heads(wave.columns)
    if heads[new].any():
        return True
    if any(columns.types[code] == OPENING for code in columns.source_type[new].tolist()):
        return True
    fenced = _ids(columns, _IS_HEAD[columns.band] & ~heads)
    head = {fact_id for fact_id, (band, _) in wave.shown.items() if band in HEAD_BANDS} - fenced
    # A fact that is linked twice is live where either is.
    live = np.flatnonzero(~columns.superseded & heads).tolist()
    head.difference_update([columns.fact_ids[i] for i in live])
    if not head:
        return False
    return not head <= _ids(columns, ~columns.superseded)


def _flag_heads(columns: FactColumns) -> Flags:
    """Return which facts are part of the system text."""
    heads: Flags = _IS_HEAD[columns.band]
    fenced = np.array([name in FENCED_IN_HEAD_BANDS for name in columns.types], np.bool_)
    return heads & ~fenced[columns.source_type] if fenced.any() else heads


def _ids(columns: FactColumns, flags: Flags) -> frozenset[str]:
    return frozenset(columns.fact_ids[i] for i in np.flatnonzero(flags).tolist())


def _find_replaced(wave: _Wave, new: Ints) -> dict[int, str]:
    """Find, for places in ``new``, the fact of the packet before that each replaces.

    That is the one that stands there in full for the same source under the same key, and is superseded.
    """
    columns = wave.columns
    slots: dict[tuple[int, int], str] = {}
    for i, identity, _, entry in _superseded(wave):
        is_keyed = columns.dedupe_key[i] != columns.no_key and _is_fenced(columns, i)
        if is_keyed and detail_of(entry) == 0:
            slots[_slot(columns, i)] = identity
    return {i: slots[slot] for i in new.tolist() if (slot := _slot(columns, i)) in slots}


def _superseded(wave: _Wave) -> Iterator[tuple[int, str, str, Entry]]:
    """Yield (place, fact id, band, entry) of what the packet before says and no longer holds."""
    columns = wave.columns
    if not columns.superseded.any():
        return
    # A fact that is linked twice is last where it was linked last.
    places = {identity: i for i, identity in enumerate(columns.fact_ids)}
    for identity, (band, entry) in wave.shown.items():
        i = places.get(identity)
        if i is not None and columns.superseded[i]:
            yield i, identity, band, entry


def _slot(columns: FactColumns, i: int) -> tuple[int, int]:
    return int(columns.dedupe_key[i]), int(columns.source_ref[i])


def _is_fenced(columns: FactColumns, i: int) -> bool:
    return columns.types[int(columns.source_type[i])] not in UNFENCED


def _append(
    wave: _Wave,
    new: Ints,
    replaced: Mapping[int, str],
    changes: Sequence[Change],
    fresh: Selection,
) -> Appended | None:
    """Return what to add to the packet before, or None where there is no room for what is worth it."""
    columns, before = wave.columns, wave.before
    offered = take_columns(columns, new)
    whole = offered.full
    tokens = {change.fact_id: change.tokens for change in changes}
    as_diff = np.array([tokens.get(identity, -1) for identity in offered.fact_ids], np.int64)
    is_diff = (as_diff >= 0) & (as_diff < whole)
    offered = replace(offered, full=np.where(is_diff, as_diff, whole))
    carried = [band.used - before.overheads.in_band(band.name) for band in before.bands]
    try:
        chosen = select_facts(
            *(offered, wave.profile, wave.ordinal, wave.way, wave.overheads, carried),
            explains=wave.explains,
        )
    except PinnedOverBudget:
        return None
    if _worth(offered, whole, chosen.level) < _worth(offered, whole, fresh.level[new]):
        return None
    entries: dict[str, list[Entry]] = {name: [] for name in BANDS}
    for at, row in enumerate(new.tolist()):
        level = int(chosen.level[at])
        if level >= 0:
            entries[BANDS[int(columns.band[row])]].append(
                Entry(
                    columns.fact_ids[row],
                    DIFF if level == 0 and is_diff[at] else LEVELS[level],
                    int(chosen.tokens[at]),
                    bool(columns.pinned[row]),
                    int(columns.ordinal[row]),
                    wave.ordinal,
                    replaced.get(row, ""),
                )
            )
    used = list(chosen.used)
    bases = {entry.base for added in entries.values() for entry in added}
    for i, identity, band, entry in _superseded(wave):
        if identity not in bases:
            line = gone(identity, columns.refs[i], entry.ordinal, wave.ordinal)
            entries[band].append(line)
            used[BANDS.index(band)] += line.tokens
    appended = Appended(
        new, chosen, {name: tuple(added) for name, added in entries.items()}, tuple(used)
    )
    return None if _passes_limits(wave, appended) else appended


def gone(identity: str, ref: str, seen: int, ordinal: int) -> Entry:
    """Return the line that says that a fact holds no longer, with its tokens at most."""
    return Entry(identity, GONE, 16 + len(ref), False, seen, ordinal, identity)


def _passes_limits(wave: _Wave, appended: Appended) -> bool:
    """Whether the budget is passed, or a band's ceiling with facts that are not pinned now."""
    if sum(appended.used) > wave.profile.total_token_budget:
        return True
    columns = wave.columns
    pinned_now = _ids(columns, columns.pinned & ~columns.superseded)
    limits = zip(wave.profile.bands, wave.before.bands, appended.used, strict=True)
    for band, old, tokens in limits:
        if tokens > band.max_tokens:
            entries = (*old.entries, *appended.entries[band.name])
            pinned = sum(entry.tokens for entry in entries if entry.fact_id in pinned_now)
            if tokens > pinned + wave.overheads.in_band(band.name):
                return True
    return False


def _worth(columns: FactColumns, whole: Ints, level: Ints) -> int:
    """Sum the tokens of facts at their levels, whole texts counted as such."""
    texts = (whole, columns.outline, columns.reference)
    return sum(int(tokens[level == at].sum()) for at, tokens in enumerate(texts))


def _tokens_to_send(fresh: Selection) -> int:
    """Count the tokens of a fresh packet that no cache has: all but the system text and the task."""
    columns = fresh.columns
    opening = np.array([name == OPENING for name in columns.types], np.bool_)
    cached = _flag_heads(columns)
    if len(columns):
        cached |= opening[columns.source_type]
    return int(fresh.tokens[(fresh.level >= 0) & ~cached].sum())


def _append_to(
    fresh: Packet, before: Packet, selection: WaveSelection, appended: Appended
) -> Packet:
    """Return the packet before with the wave's entries behind its own; its limits are those of ``fresh``."""
    columns = selection.fresh.columns
    pinned = _ids(columns, columns.pinned & ~columns.superseded)
    entries = [
        (
            *(
                entry
                if entry.pinned == (entry.fact_id in pinned)
                else replace(entry, pinned=not entry.pinned)
                for entry in old.entries
            ),
            *appended.entries[old.name],
        )
        for old in before.bands
    ]
    shown = {entry.fact_id for of_band in entries for entry in of_band}
    missing = np.array([identity not in shown for identity in columns.fact_ids], np.bool_)
    lost = np.bincount(columns.band[missing], minlength=len(BANDS)).tolist()
    why = reasons_to_drop(selection, appended)[missing]
    reasons = np.bincount(why, minlength=len(REASONS)).tolist()
    return dataclasses.replace(
        fresh,
        token_used=sum(appended.used),
        bands=tuple(
            replace(band, used=used, dropped=count, entries=of_band)
            for band, used, count, of_band in zip(
                fresh.bands, appended.used, lost, entries, strict=True
            )
        ),
        drops=tuple(
            (reason, count) for reason, count in zip(REASONS, reasons, strict=True) if count
        ),
        quality_ppm=appended.chosen.quality_ppm,
    )


def reasons_to_drop(selection: WaveSelection, appended: Appended) -> Ints:
    """Return why each fact would be missing: a new one by its own selection, others by the fresh one."""
    reasons = selection.fresh.dropped_for.copy()
    reasons[appended.rows] = appended.chosen.dropped_for
    return np.where(reasons == NO_REASON, _BUDGET, reasons)

"""What a wave adds to the packet before it: all that is new, behind what stands there already.

It fits, or an epoch ends: nothing that was rendered changes. See ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.fenced_text import FENCED_IN_HEAD_BANDS, HEAD_BANDS, MESSAGE_SOURCES
from cockpit.orient.fact_columns import FactColumns, Flags, Ints
from cockpit.orient.score_facts import Scores
from cockpit.orient.select_facts import NO_REASON, is_pinned, rule_out
from cockpit.store.context.packet_epoch import Change
from cockpit.store.context.packets import DIFF, GONE, POINTED, Entry, Overheads, Packet, detail_of
from cockpit.store.context.profile_model import BANDS, Profile

OPENING = "task"
"""The source of what opens the messages of a prompt."""
_UNFENCED = (*MESSAGE_SOURCES, OPENING, "exchange")
_NEVER_POINTED = (*MESSAGE_SOURCES, OPENING)
_IS_HEAD = np.array([name in HEAD_BANDS for name in BANDS], np.bool_)
MOST_CHANGES = 256
"""Differences and repeats that are worked out in one wave; further facts are shown whole."""

CountChanges = Callable[
    [Sequence[tuple[str, str]], Sequence[Sequence[str]], Sequence[str]], Sequence[Change]
]
"""Counts the differences of (fact, fact that it replaces), and what facts, wave by wave, repeat of those
that are shown before them; leaves out those without any."""


class Appended(Struct, frozen=True):
    """What a wave adds.

    ``entries`` are the new ones by band, ``used`` the tokens by band, overheads and all that is carried
    included. ``dropped_for`` says why each fact of the columns is out that the packet does not show.
    """

    entries: Mapping[str, tuple[Entry, ...]]
    used: tuple[int, ...]
    dropped_for: Ints


def find_new(columns: FactColumns, before: Packet) -> Ints:
    """Return the places of facts that the packet before does not show, or not as far as it must.

    These are facts that this wave saw first or was granted again, and facts that are pinned now.
    """
    shown = before.in_force()
    offered = ~columns.superseded & ((columns.ordinal > before.ordinal) | columns.pinned)
    places = []
    for i in np.flatnonzero(offered).tolist():
        held = shown.get(columns.fact_ids[i])
        if held is not None:
            detail = detail_of(held[1])
            is_enough = held[1].pinned or (detail == 1 and columns.pinned[i] and columns.short[i])
            if detail == 0 or (columns.ordinal[i] <= before.ordinal and is_enough):
                continue
        places.append(i)
    return np.array(places, np.int64)


def changes_head(columns: FactColumns, before: Packet, new: Ints) -> bool:
    """Whether the system text or what opens the messages would be another one."""
    heads = flag_heads(columns)
    if heads[new].any():
        return True
    if any(columns.types[code] == OPENING for code in columns.source_type[new].tolist()):
        return True
    fenced = _ids(columns, _IS_HEAD[columns.band] & ~heads)
    head = {name for name, (band, _) in before.in_force().items() if band in HEAD_BANDS} - fenced
    # A fact that is linked twice is live where either is.
    return bool(head) and not head <= _ids(columns, ~columns.superseded)


def flag_heads(columns: FactColumns) -> Flags:
    """Return which facts are part of the system text."""
    fenced = np.array([name in FENCED_IN_HEAD_BANDS for name in columns.types], np.bool_)
    heads: Flags = _IS_HEAD[columns.band]
    return heads & ~fenced[columns.source_type] if len(columns) else heads


def find_changes(
    columns: FactColumns, before: Packet, new: Ints, count_changes: CountChanges
) -> tuple[Mapping[int, str], tuple[Change, ...]]:
    """Return the facts that new ones replace, by place, and the shorter forms in which new ones can come."""
    replaced = _find_replaced(columns, before, new)
    pairs = [(columns.fact_ids[row], base) for row, base in replaced.items()]
    free = [i for i in new.tolist() if i not in replaced]
    shown = [
        name
        for name, (_, entry) in before.in_force().items()
        if entry.level in ("full", POINTED)
    ]  # fmt: skip
    return replaced, tuple(
        count_changes(pairs[:MOST_CHANGES], [list_pointable(columns, free)], shown)
    )


def list_pointable(columns: FactColumns, places: Sequence[int]) -> list[str]:
    """Return the ids of facts at ``places`` that may point to text above them."""
    heads = flag_heads(columns)
    return [
        columns.fact_ids[i]
        for i in places
        if not heads[i] and columns.types[int(columns.source_type[i])] not in _NEVER_POINTED
    ][:MOST_CHANGES]


def append_facts(
    columns: FactColumns,
    scores: Scores,
    profile: Profile,
    overheads: Overheads,
    before: Packet,
    ordinal: int,
    new: Ints,
    replaced: Mapping[int, str],
    changes: Sequence[Change],
) -> Appended | None:
    """Return what to add to the packet before; None where it does not fit.

    The budget bounds all of it, a band's ceiling what is not pinned.
    """
    pinned_now = _ids(columns, is_pinned(columns))
    shorter = {change.fact_id: change for change in changes}
    dropped_for = rule_out(columns, scores)
    entries: dict[str, list[Entry]] = {name: [] for name in BANDS}
    for i in new.tolist():
        if dropped_for[i] == NO_REASON:
            entries[BANDS[int(columns.band[i])]].append(
                _entry(columns, i, ordinal, replaced.get(i, ""), shorter.get(columns.fact_ids[i]))
            )
    bases = {entry.base for added in entries.values() for entry in added if entry.level != POINTED}
    for i, identity, band, entry in _superseded(columns, before):
        if identity not in bases:
            gone = Entry(
                identity, GONE, 16 + len(columns.refs[i]), False, entry.ordinal, ordinal, identity
            )
            entries[band].append(gone)
    used = []
    for limits, old in zip(profile.bands, before.bands, strict=True):
        added = entries[limits.name]
        more = overheads.in_band(limits.name) - before.overheads.in_band(limits.name)
        tokens = old.used + more + sum(entry.tokens for entry in added)
        if tokens > limits.max_tokens:
            pinned = sum(e.tokens for e in (*old.entries, *added) if e.fact_id in pinned_now)
            if tokens > pinned + overheads.in_band(limits.name):
                return None
        used.append(tokens)
    if sum(used) > profile.total_token_budget:
        return None
    return Appended(
        {name: tuple(added) for name, added in entries.items()}, tuple(used), dropped_for
    )


def _entry(columns: FactColumns, i: int, ordinal: int, base: str, change: Change | None) -> Entry:
    tokens, level = int(columns.full[i]), "full"
    if change is not None and change.points:
        tokens, base, level = max(tokens - change.tokens, 0), change.base, POINTED
    elif change is not None and change.tokens < tokens:
        tokens, base, level = change.tokens, change.base, DIFF
    return Entry(
        *(columns.fact_ids[i], level, tokens, bool(columns.pinned[i]), int(columns.ordinal[i])),
        added=ordinal,
        base=base,
    )


def extend_bands(
    columns: FactColumns, before: Packet, appended: Appended
) -> list[tuple[Entry, ...]]:
    """Return the entries of each band: those of the packet before, pinned as now, and the new ones."""
    pinned = _ids(columns, is_pinned(columns))
    return [
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


def _find_replaced(columns: FactColumns, before: Packet, new: Ints) -> dict[int, str]:
    """Find, for places in ``new``, the fact of the packet before that each replaces.

    That is the one that stands there in full for the same source under the same key, and is superseded.
    """
    slots: dict[tuple[int, int], str] = {}
    for i, identity, _, entry in _superseded(columns, before):
        is_fenced = columns.types[int(columns.source_type[i])] not in _UNFENCED
        if columns.dedupe_key[i] != columns.no_key and is_fenced and detail_of(entry) == 0:
            slots[_slot(columns, i)] = identity
    return {i: slots[slot] for i in new.tolist() if (slot := _slot(columns, i)) in slots}


def _superseded(columns: FactColumns, before: Packet) -> Iterator[tuple[int, str, str, Entry]]:
    """Yield (place, fact id, band, entry) of what the packet before says and no longer holds."""
    if not columns.superseded.any():
        return
    # A fact that is linked twice is last where it was linked last.
    places = {identity: i for i, identity in enumerate(columns.fact_ids)}
    for identity, (band, entry) in before.in_force().items():
        i = places.get(identity)
        if i is not None and columns.superseded[i]:
            yield i, identity, band, entry


def _slot(columns: FactColumns, i: int) -> tuple[int, int]:
    return int(columns.dedupe_key[i]), int(columns.source_ref[i])


def _ids(columns: FactColumns, flags: Flags) -> frozenset[str]:
    return frozenset(columns.fact_ids[i] for i in np.flatnonzero(flags).tolist())

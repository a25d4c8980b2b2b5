"""The selection of a packet's facts, and of the detail level of each.

Pinned facts come first. A fractional knapsack then allocates the budget to the bands: each to its
floor, then to its target, then up to its ceiling, by worth per token. Within its allocation each band
is filled greedily with whole facts, each at the fullest level that fits; a 0/1 knapsack decides at the
break point, and leftover tokens go to facts that still fit. The fractional solution is an upper bound
for whole facts, and a packet's quality is measured against it.
See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.errors import CockpitError
from cockpit.orient.allocate_bands import BandAllocation, BandLimits, allocate_bands
from cockpit.orient.fact_columns import NEVER, FactColumns, Flags, Ints
from cockpit.orient.greedy_fill import (
    DROPPED,
    FULL,
    OUTLINE,
    LevelTokens,
    fill_greedily,
    spend_leftover,
)
from cockpit.orient.knapsack import RankedFacts, fill_with_knapsack
from cockpit.orient.radix_sort import radix_order
from cockpit.orient.score_facts import SCORE_MAX, score_facts
from cockpit.orient.source_caps import CapSplit, split_by_caps, type_caps
from cockpit.orient.source_diversity import REF_SHARE, assign_tiers, find_repeats
from cockpit.store.context.facts import UTILITY_MAX
from cockpit.store.context.packets import REASONS, Overheads
from cockpit.store.context.profile_model import BANDS, Profile

_WORTH_BITS = 16
_LOOK = 8_192
_RESERVE = BANDS.index("reserve")

KEPT = ("pinned", "floor", "target", "utility")
"""Why a fact is kept: pinned, within the band's floor, within its target, or above by worth."""
NO_REASON = -1


class PinnedOverBudget(CockpitError):
    """The pinned facts alone do not fit beside the floors of the other bands."""

    code = "pinned_over_budget"


class Algorithm(Struct, frozen=True):
    """A version of the selection; its ``name`` is part of every packet that it compiles.

    ``weighs``: a source's best fact is never held back by a cap, and the facts at the edge of a
    source's share or a band's room are chosen together. ``renders``: tokens are those of the prompt as it
    is rendered, overheads included; a floor is reserved for facts that exist; pins alone can exceed the
    budget; and a pin may be satisfied by an outline. ``condenses``: a packet that begins a later epoch shows
    what is spent in outline or as a reference.
    """

    name: str
    weighs: bool
    renders: bool = False
    condenses: bool = False


class Selection(Struct, frozen=True):
    """The verdict on every fact; arrays have one item a fact, in the order of ``columns``.

    ``level`` is 0 full, 1 outline, 2 reference, -1 dropped. ``kept_for`` indexes :data:`KEPT`,
    ``dropped_for`` the store's ``REASONS``; :data:`NO_REASON` where it does not apply. ``used`` is
    tokens by band. ``value`` and ``bound`` are worth × tokens: what was selected, and the bound.
    ``algorithm`` is the name of the way it was selected in.
    """

    algorithm: str
    columns: FactColumns
    score: Ints
    level: Ints
    tokens: Ints
    kept_for: Ints
    dropped_for: Ints
    used: tuple[int, ...]
    value: int
    bound: int

    @property
    def quality_ppm(self) -> int:
        """``value / bound`` in millionths, 1,000,000 where there was nothing to choose."""
        return min(self.value * 1_000_000 // self.bound, 1_000_000) if self.bound else 1_000_000


_BUDGET, _CEILING, _SOURCE_CAP, _DUPLICATE, _SUPERSEDED, _LOW = range(len(REASONS))


def select_facts(
    columns: FactColumns,
    profile: Profile,
    ordinal: int,
    way: Algorithm,
    overheads: Overheads,
    carried: Sequence[int] = (),
    *,
    explains: bool = True,
) -> Selection:
    """Choose facts and levels for wave ``ordinal`` under a sound profile. Pure and deterministic.

    ``carried`` are the tokens, by band, that the packet has already; ``used`` contains them. What is
    superseded is out even when pinned: its newer version stands for it. Without ``explains`` the selection
    need not say why a fact is kept (``kept_for``), which a packet does not contain. Raises
    :class:`PinnedOverBudget` naming the pinned facts.
    """
    scored = score_facts(columns, profile, ordinal)
    dropped_for = np.full(len(columns), NO_REASON, np.int64)
    pinned = columns.pinned & ~columns.superseded & ~columns.repeated
    # The reserve is room for the answer: nothing that could be left out is put there.
    dropped_for[columns.band == _RESERVE] = _CEILING
    dropped_for[~scored.admitted] = _LOW
    dropped_for[find_repeats(columns)] = _DUPLICATE
    dropped_for[columns.superseded] = _SUPERSEDED
    dropped_for[pinned] = NO_REASON
    pins = _Pins.of(columns, pinned, way)
    offered = pins.offer(columns)
    open_to_choice = np.flatnonzero((~pinned | pins.short) & (dropped_for == NO_REASON))
    limits = _band_limits(columns, offered, open_to_choice, profile, pins, way, overheads, carried)

    if not explains and way.renders and _has_room_for_all(offered, open_to_choice, limits):
        return _take_all(
            columns, offered, open_to_choice, scored.score, dropped_for, pins, limits, way
        )
    worth = scored.score << _WORTH_BITS
    if profile.ranking == "density":
        worth = worth // np.maximum(columns.full, 1)
    everything = _sort_by_worth(open_to_choice, worth, columns.utility if way.renders else None)
    if way.renders and _has_room_for_all(offered, everything, limits):
        return _select_all(
            columns, offered, everything, worth, scored.score, dropped_for, pins, limits, way
        )
    held = _prefilter(offered, everything, limits, way)
    near = everything[: len(held.tier)]
    # Each fact is listed three times: its part within all caps, then its parts over a cap.
    allotted = allocate_bands(
        np.tile(columns.band[near], len(held.parts)),
        held.parts.ravel(),
        np.tile(worth[near], len(held.parts)),
        limits,
    )
    by_tier = radix_order(held.tier)
    ranked, tier = near[by_tier], held.tier[by_tier]
    band, levels = columns.band[ranked], _levels_of(offered, ranked)

    facts = RankedFacts(levels, tier, by_tier, worth[ranked], columns.source_type[ranked])
    chosen, used = _fill_bands(facts, band, allotted, limits, way)
    unseen = everything[len(near) :]
    least = _smallest(offered, unseen) if way.renders else columns.full[unseen]
    spend_leftover(band, levels, chosen, used, limits)
    if way.renders:
        # No fact is left that could fill the rest of its own floor: that room is everybody's.
        freed = np.array(used, np.int64)
        freed[_RESERVE] = max(used[_RESERVE], int(limits.floor[_RESERVE]))
        unreserved = replace(limits, floor=freed)
        spend_leftover(band, levels, chosen, used, unreserved)
        late = unseen[least <= _room_left(used, unreserved)[columns.band[unseen]]]
        if len(late):
            ranked, tier = np.append(ranked, late), np.append(tier, np.full(len(late), 2))
            chosen = np.append(chosen, np.full(len(late), DROPPED))
            band, levels = columns.band[ranked], levels.joined(_levels_of(offered, late))
            spend_leftover(band, levels, chosen, used, unreserved)

    taken = levels.at(np.arange(len(ranked)), chosen)
    level = np.where(pinned, np.where(pins.short, OUTLINE, FULL), DROPPED)
    level[ranked] = np.where(chosen == DROPPED, level[ranked], chosen)
    tokens = pins.tokens.copy()
    tokens[ranked] += taken
    begins = limits.pinned[band]
    for code in range(len(BANDS)):
        at = np.flatnonzero(band == code)
        begins[at] += np.cumsum(taken[at]) - taken[at]
    stage = 1 + (begins >= limits.floor[band]) + (begins >= limits.target[band])
    kept_for = np.full(len(columns), NO_REASON)
    kept_for[ranked] = np.where(chosen == DROPPED, NO_REASON, stage)
    kept_for[pinned] = 0
    remaining = limits.ceiling - np.array(used, np.int64)
    dropped_for[unseen] = np.where(least > remaining[columns.band[unseen]], _CEILING, _BUDGET)
    why = np.where(levels.smallest > remaining[band], _CEILING, _BUDGET)
    why[_passed_over(band, worth[ranked], chosen, int((tier > 0).sum()))] = _SOURCE_CAP
    dropped_for[ranked] = np.where(chosen == DROPPED, why, NO_REASON)
    dropped_for[pinned] = NO_REASON
    return Selection(
        way.name,
        columns,
        scored.score,
        level,
        tokens,
        kept_for,
        dropped_for,
        tuple(used),
        int((worth[ranked] * taken).sum()),
        int(allotted.bound.sum()),
    )


def _has_room_for_all(offered: FactColumns, ranked: Ints, limits: BandLimits) -> bool:
    """Whether every fact to choose from fits in full, below the ceilings and beside the floors."""
    if len(ranked) > _LOOK:
        return False
    there = _tokens_by_band(offered, ranked)
    held = limits.pinned + there
    if ((held > limits.ceiling) & (there > 0)).any():
        return False
    return int(np.maximum(held, limits.floor).sum()) <= limits.total


def _select_all(
    columns: FactColumns,
    offered: FactColumns,
    everything: Ints,
    worth: Ints,
    score: Ints,
    dropped_for: Ints,
    pins: _Pins,
    limits: BandLimits,
    way: Algorithm,
) -> Selection:
    """Select every fact to choose from, in full: what all steps of the selection come to where all fit.

    Nothing competes then, and a cap only says in which order its facts are counted.
    """
    ranked = everything
    if _is_capped(offered, everything, limits.target):
        ranked = everything[radix_order(split_by_caps(offered, everything, limits.target).tier)]
    band, taken = columns.band[ranked], offered.full[ranked]
    level = np.where(pins.pinned, np.where(pins.short, OUTLINE, FULL), DROPPED)
    level[ranked] = FULL
    tokens = pins.tokens.copy()
    tokens[ranked] += taken
    by_band = np.argsort(band, kind="stable")
    sizes, of = taken[by_band], band[by_band]
    there = _tokens_by_band(offered, ranked)
    begins = np.cumsum(sizes) - sizes + (limits.pinned - (np.cumsum(there) - there))[of]
    kept_for = np.full(len(columns), NO_REASON)
    kept_for[ranked[by_band]] = 1 + (begins >= limits.floor[of]) + (begins >= limits.target[of])
    kept_for[pins.pinned] = 0
    value = int((worth[ranked] * taken).sum())
    return Selection(
        way.name,
        columns,
        score,
        level,
        tokens,
        kept_for,
        dropped_for,
        tuple((limits.pinned + there).tolist()),
        value,
        value,
    )


def _take_all(
    columns: FactColumns,
    offered: FactColumns,
    places: Ints,
    score: Ints,
    dropped_for: Ints,
    pins: _Pins,
    limits: BandLimits,
    way: Algorithm,
) -> Selection:
    """Select as :func:`_select_all` does, without saying why each fact is kept.

    All of the worth is selected, whatever it is: 0 of 0.
    """
    level = np.where(pins.pinned, np.where(pins.short, OUTLINE, FULL), DROPPED)
    level[places] = FULL
    tokens = pins.tokens.copy()
    tokens[places] += offered.full[places]
    used = tuple((limits.pinned + _tokens_by_band(offered, places)).tolist())
    kept_for = np.full(len(columns), NO_REASON)
    return Selection(
        *(way.name, columns, score, level, tokens, kept_for, dropped_for, used), value=0, bound=0
    )


def _is_capped(offered: FactColumns, ranked: Ints, targets: Ints) -> bool:
    """Whether a source may hold more than its share of a band."""
    band, tokens = offered.band[ranked], offered.full[ranked]
    for source, caps in (
        (offered.source_ref, targets // REF_SHARE),
        (offered.source_type, type_caps(targets)),
    ):
        held = np.bincount(source[ranked], weights=tokens, minlength=1)
        if held.max() > caps[band].min(initial=NEVER):
            return True
    return False


def _tokens_by_band(offered: FactColumns, places: Ints) -> Ints:
    # Sums of whole tokens far below 2**53 are exact in the floats that bincount uses.
    return np.bincount(
        offered.band[places], weights=offered.full[places], minlength=len(BANDS)
    ).astype(np.int64)


class _Pins(Struct, frozen=True):
    """What is pinned, at the least level that its pin asks for; arrays have one item a fact.

    ``short`` marks pins that are satisfied by an outline; ``tokens`` are those of the least level, 0 for
    facts that are not pinned.
    """

    pinned: Flags
    short: Flags
    tokens: Ints

    @classmethod
    def of(cls, columns: FactColumns, pinned: Flags, way: Algorithm) -> _Pins:
        if not way.renders:
            return cls(pinned, np.zeros(len(columns), np.bool_), np.where(pinned, columns.full, 0))
        short = pinned & columns.short & (columns.outline < NEVER)
        least = np.where(short, columns.outline, columns.full)
        return cls(pinned, short, np.where(pinned, least, 0))

    def offer(self, columns: FactColumns) -> FactColumns:
        """The facts as they compete: a short pin for what its full text takes beyond its outline."""
        if not self.short.any():
            return columns
        return replace(
            columns,
            full=np.where(self.short, columns.full - columns.outline, columns.full),
            outline=np.where(self.short, 0, columns.outline),
            reference=np.where(self.short, NEVER, columns.reference),
        )


def _levels_of(columns: FactColumns, at: Ints) -> LevelTokens:
    return LevelTokens.of(columns.full[at], columns.outline[at], columns.reference[at])


def _smallest(columns: FactColumns, at: Ints) -> Ints:
    return np.minimum(np.minimum(columns.full[at], columns.outline[at]), columns.reference[at])


def _room_left(used: list[int], limits: BandLimits) -> Ints:
    """Tokens by band that are left below its ceiling and the budget, beside what is reserved."""
    held = np.maximum(np.array(used, np.int64), limits.floor)
    spare = limits.total - int(held.sum())
    below = limits.ceiling - np.array(used, np.int64)
    return np.where(below < spare, below, spare)


def _fill_bands(
    facts: RankedFacts, band: Ints, allotted: BandAllocation, limits: BandLimits, way: Algorithm
) -> tuple[Ints, list[int]]:
    """The level of each fact, and the tokens of each band, pinned included."""
    chosen = np.full(len(band), DROPPED, np.int64)
    used = limits.pinned.tolist()
    caps = type_caps(limits.target).tolist()
    spare = 0
    for code, room in enumerate(allotted.room.tolist()):
        at = np.flatnonzero(band == code)
        if way.weighs:
            # What whole facts left over in the bands before is here to be used.
            free = max(used[code] + room, int(limits.floor[code])) + spare
            room = max(min(free, int(limits.ceiling[code])) - used[code], room)
            chosen[at] = fill_with_knapsack(facts, at, room, int(allotted.bound[code]), caps[code])
            used[code] += int(facts.levels.at(at, chosen[at]).sum())
            spare = free - max(used[code], int(limits.floor[code]))
        else:
            chosen[at] = fill_greedily(facts.levels, at, room)
            used[code] += int(facts.levels.at(at, chosen[at]).sum())
    return chosen, used


def _band_limits(
    columns: FactColumns,
    offered: FactColumns,
    candidates: Ints,
    profile: Profile,
    pins: _Pins,
    way: Algorithm,
    overheads: Overheads,
    carried: Sequence[int],
) -> BandLimits:
    # Sums of whole tokens far below 2**53 are exact in the floats that bincount uses.
    of_band = np.bincount(columns.band, weights=pins.tokens, minlength=len(BANDS)).tolist()
    pinned = [
        int(of_band[code])
        + (overheads.in_band(name) if way.renders else 0)
        + (carried[code] if carried else 0)
        for code, name in enumerate(BANDS)
    ]
    sizes = [(band.min_tokens, band.target_tokens, band.max_tokens) for band in profile.bands]
    floor, target, ceiling = np.array(sizes, np.int64).T.copy()
    limits = BandLimits(
        profile.total_token_budget, floor, target, ceiling, np.array(pinned, np.int64)
    )
    if way.renders:
        limits = _reserve_for_facts(limits, offered, candidates)
    if limits.shared < 0:
        explain = _pinned_message if way.renders else _over_budget_message
        raise PinnedOverBudget(explain(columns, pins, limits, overheads))
    return limits


def _reserve_for_facts(limits: BandLimits, offered: FactColumns, candidates: Ints) -> BandLimits:
    """The limits with floors as high as there are facts to fill them, and room beside what is pinned.

    Where that room is too small for all floors, each gets its share of it. The reserve is for the answer,
    whatever facts there are.
    """
    there = _tokens_by_band(offered, candidates)
    there[_RESERVE] = limits.floor[_RESERVE]
    wanted = np.clip(limits.floor - limits.pinned, 0, there)
    room = max(limits.total - int(limits.pinned.sum()), 0)
    if room < int(wanted.sum()):
        wanted = wanted * room // int(wanted.sum())
    return replace(limits, floor=limits.pinned + wanted)


def _pinned_message(
    columns: FactColumns, pins: _Pins, limits: BandLimits, overheads: Overheads
) -> str:
    at = np.flatnonzero(pins.pinned).tolist()
    at.sort(key=lambda i: (-int(pins.tokens[i]), i))
    named = ", ".join(f"{columns.refs[i]} ({int(pins.tokens[i]):,})" for i in at)
    return (
        f"The pinned facts need {int(pins.tokens.sum()):,} tokens, and tool definitions and answer"
        f" {overheads.total:,}: {-limits.shared:,} more than the budget of {limits.total:,}. Pinned facts"
        " are never dropped. Unpin some (cockpit packet unpin FACT), shorten AGENTS.md or"
        " .cockpit/context.md, set a larger ORIENTATION_TOKEN_BUDGET, or approve a profile change with a"
        f" larger budget; then resume the session. Largest first: {named}."
    )


def _over_budget_message(
    columns: FactColumns, pins: _Pins, limits: BandLimits, overheads: Overheads
) -> str:
    at = np.flatnonzero(pins.pinned).tolist()
    at.sort(key=lambda i: (-int(columns.full[i]), i))
    named = ", ".join(f"{columns.refs[i]} ({int(columns.full[i]):,})" for i in at)
    return (
        f"The pinned facts need {int(limits.pinned.sum()):,} tokens; beside the floors of the other"
        f" bands the budget of {limits.total:,} is {-limits.shared:,} short. Pinned facts are never"
        f" dropped: unpin some, or raise the budget. Largest first: {named}."
    )


def _sort_by_worth(at: Ints, worth: Ints, utility: Ints | None) -> Ints:
    """Indices by worth, best first; equal worth by utility if given, then by index.

    The index is the order of time and id.
    """
    if utility is not None:
        at = at[radix_order(UTILITY_MAX - utility[at])]
    return at[radix_order((SCORE_MAX << _WORTH_BITS) - worth[at])]


def _prefilter(columns: FactColumns, ranked: Ints, limits: BandLimits, way: Algorithm) -> CapSplit:
    """The shares of the best facts: all that can matter, of ``ranked`` as many as the answer has.

    Up to :data:`_LOOK` facts are all looked at. Of more, those are that come before the point where
    what no cap holds back would fill every band's ceiling and a quarter more.
    """
    count = _LOOK
    while True:
        near, rest = ranked[:count], ranked[count:]
        split = _split_by_caps(columns, near, limits.target, way)
        if not len(rest):
            return split
        bands = len(limits.ceiling)
        held = np.bincount(columns.band[near], weights=split.parts[0], minlength=bands)
        waiting = np.bincount(columns.band[rest], minlength=bands) > 0
        if not (waiting & (held * 4 < limits.ceiling * 5)).any():
            return split
        count *= 2


def _split_by_caps(columns: FactColumns, near: Ints, targets: Ints, way: Algorithm) -> CapSplit:
    if way.weighs:
        return split_by_caps(columns, near, targets)
    tier = assign_tiers(columns, near, targets)
    tokens = columns.full[near]
    return CapSplit(np.stack([np.where(tier == waits, tokens, 0) for waits in range(3)]), tier)


def _passed_over(band: Ints, worth: Ints, chosen: Ints, behind: int) -> Ints:
    """Of the last ``behind`` facts, those dropped while a band took something worth less."""
    cut = len(band) - behind
    places = cut + np.flatnonzero(chosen[cut:] == DROPPED)
    kept = chosen != DROPPED
    least = np.full(len(BANDS), np.iinfo(np.int64).max)
    np.minimum.at(least, band[kept], worth[kept])
    return places[worth[places] > least[band[places]]]

"""The selection of a packet's facts, and of the detail level of each.

Pinned facts come first. Where everything else fits, it is taken whole. Else each band is filled to its floor,
then to its target, then up to its ceiling, the worthiest fact first, each at the fullest level that fits; a
source that has its share waits for the others. At the end nothing is out that has room. See
``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from cockpit.core.errors import CockpitError
from cockpit.orient.fact_columns import NEVER, FactColumns, Flags, Ints
from cockpit.orient.score_facts import Relevance, Scores, score_facts
from cockpit.store.context.facts import UTILITY_MAX
from cockpit.store.context.packets import REASONS, Overheads
from cockpit.store.context.profile_model import BANDS, Profile

FULL, OUTLINE, REFERENCE, DROPPED = 0, 1, 2, -1
KEPT = ("pinned", "floor", "target", "utility")
"""Why a fact is kept: pinned, within the band's floor, within its target, or above by worth."""
NO_REASON = -1
REF_SHARE = 3
TYPE_SHARE = 4
"""One source reference may use a third of its band's target, one source type three quarters."""
SITUATIONAL = BANDS.index("situational")
_RESERVE = BANDS.index("reserve")
BUDGET, _CEILING, _SOURCE_CAP, _DUPLICATE, _SUPERSEDED, _LOW = range(len(REASONS))
_WORTH_BITS = 8
_CHUNK = 1_024
_STAYS_WHOLE = ("task", "person", "rule", "preamble", "notice", "tools")
"""Sources whose pins are never shortened: the user's words, constraints and the Definition of Done."""
_SHORTENED_FIRST = ("exploration", "situational", "capabilities", "objectives", "identity")
"""The order in which the pins of bands are shortened, the oldest first, where they exceed the budget."""


class PinnedOverBudget(CockpitError):
    """The pinned facts alone do not fit, even shortened."""

    code = "pinned_over_budget"


class Headroom(Struct, frozen=True):
    """Room that a packet leaves for the waves after it.

    ``tokens`` are free in the budget and below the ceiling of ``situational``, but for what ``protected``
    facts and floors need; the array has one item a fact.
    """

    tokens: int
    protected: Flags


class Selection(Struct, frozen=True):
    """The verdict on every fact; arrays have one item a fact, in the order of ``columns``.

    ``level`` is 0 full, 1 outline, 2 reference, -1 dropped. ``kept_for`` indexes :data:`KEPT`,
    ``dropped_for`` the store's ``REASONS``; :data:`NO_REASON` where it does not apply. ``used`` is tokens by
    band, overheads included.
    """

    columns: FactColumns
    scores: Scores
    level: Ints
    tokens: Ints
    kept_for: Ints
    dropped_for: Ints
    used: tuple[int, ...]


def select_facts(
    columns: FactColumns,
    profile: Profile,
    ordinal: int,
    overheads: Overheads,
    *,
    relevance: Relevance | None = None,
    headroom: Headroom | None = None,
) -> Selection:
    """Choose facts and levels for wave ``ordinal`` under a sound profile. Pure and deterministic.

    What is superseded is out even when pinned: its newer version stands for it. Raises
    :class:`PinnedOverBudget` naming the pinned facts.
    """
    scores = score_facts(columns, profile, ordinal, relevance)
    dropped_for = rule_out(columns, scores)
    pinned = is_pinned(columns)
    level = _level_pins(columns, pinned, profile.total_token_budget - overheads.total)
    tokens = tokens_at(columns, level)
    filling = _Filling(columns, profile, overheads, level, tokens, dropped_for, headroom)
    worth = scores.worth << _WORTH_BITS
    if profile.ranking == "density":
        worth = worth // np.maximum(columns.full, 1)
    if sum(filling.held) > filling.total:
        over = sum(filling.held) - filling.total
        raise PinnedOverBudget(_pinned_message(columns, pinned, tokens, over, overheads))
    filling.fill(_rank(filling.open_to_choice, worth, columns.utility, headroom))
    filling.kept_for[pinned] = 0
    level = filling.level
    tokens = tokens_at(columns, level)
    dropped_for = np.where(level == DROPPED, filling.reasons(dropped_for), NO_REASON)
    return Selection(
        columns, scores, level, tokens, filling.kept_for, dropped_for, tuple(filling.used)
    )


def is_crowded(chosen: Selection) -> bool:
    """Whether something that competed is out or shortened."""
    lacks = (chosen.dropped_for >= 0) & (chosen.dropped_for <= _SOURCE_CAP)
    lacks |= chosen.level > FULL
    return bool(lacks.any())


def is_pinned(columns: FactColumns) -> Flags:
    """Return which facts a packet has in any case."""
    return columns.pinned & ~columns.superseded


def rule_out(columns: FactColumns, scores: Scores) -> Ints:
    """Return for each fact why no packet has it, or :data:`NO_REASON`."""
    dropped_for = np.full(len(columns), NO_REASON, np.int64)
    # The reserve is room for the answer: nothing that could be left out is put there.
    dropped_for[columns.band == _RESERVE] = _CEILING
    dropped_for[~scores.admitted] = _LOW
    dropped_for[find_repeats(columns)] = _DUPLICATE
    dropped_for[columns.superseded] = _SUPERSEDED
    dropped_for[is_pinned(columns)] = NO_REASON
    return dropped_for


def find_repeats(columns: FactColumns) -> Flags:
    """Return live facts that are not pinned and whose place was observed again.

    A place is (source type, source reference, dedupe key); a fact without a key has none.
    """
    repeats = np.zeros(len(columns), np.bool_)
    keyed = np.flatnonzero(~columns.superseded & (columns.dedupe_key != columns.no_key))
    if not len(keyed) or np.bincount(columns.dedupe_key[keyed]).max() < 2:
        return repeats
    place = columns.dedupe_key * (columns.source_ref.max() + 1) + columns.source_ref
    place = place * (columns.source_type.max() + 1) + columns.source_type
    order = keyed[np.argsort(place[keyed], kind="stable")]
    # Facts of one wave are parts of one look, and stand beside each other.
    last = np.flatnonzero(np.append(place[order[1:]] != place[order[:-1]], True))
    newest = np.repeat(columns.ordinal[order[last]], np.diff(last, prepend=-1))
    again = order[columns.ordinal[order] < newest]
    repeats[again[~columns.pinned[again]]] = True
    return repeats


def tokens_at(columns: FactColumns, level: Ints) -> Ints:
    """Return the tokens of each fact at its level, 0 for a dropped one."""
    levels = np.stack((columns.full, columns.outline, columns.reference))
    return np.where(level == DROPPED, 0, levels[np.maximum(level, FULL), np.arange(len(columns))])


def _level_pins(columns: FactColumns, pinned: Flags, room: int) -> Ints:
    """Return the least level of each pinned fact, -1 for others: the pins are shortened until they fit.

    A pin that an outline satisfies has it; those compete for their full text later. Then, band by band and
    the oldest first, pins get their outlines, then their references. The user's words stay.
    """
    short = pinned & columns.short & (columns.outline < NEVER)
    level = np.where(pinned, np.where(short, OUTLINE, FULL), DROPPED)
    over = int(tokens_at(columns, level).sum()) - room
    if over <= 0:
        return level
    rank = [_SHORTENED_FIRST.index(name) if name != "reserve" else 0 for name in BANDS]
    places = [
        i for i in np.flatnonzero(pinned).tolist()
        if columns.types[int(columns.source_type[i])] not in _STAYS_WHOLE
    ]  # fmt: skip
    places.sort(key=lambda i: (rank[int(columns.band[i])], i))
    sizes = (columns.full, columns.outline, columns.reference)
    for shorter in (OUTLINE, REFERENCE):
        for i in places:
            saved = int(sizes[int(level[i])][i] - sizes[shorter][i])
            if over > 0 and saved > 0:
                level[i] = shorter
                over -= saved
    return level


def _rank(at: Ints, worth: Ints, utility: Ints, headroom: Headroom | None) -> Ints:
    """Sort places by worth, best first; equal worth by utility, then by place: time and id.

    What is protected comes before the rest.
    """
    keys = [UTILITY_MAX - utility[at], -worth[at]]
    if headroom is not None:
        keys.append((~headroom.protected[at]).astype(np.int64))
    return at[np.lexsort(keys)]


class _Filling:
    """The bands while they are filled. ``used`` are tokens by band, ``held`` those that are reserved."""

    def __init__(
        self,
        columns: FactColumns,
        profile: Profile,
        overheads: Overheads,
        pins: Ints,
        tokens: Ints,
        dropped_for: Ints,
        headroom: Headroom | None,
    ) -> None:
        self.columns = columns
        self.sizes = np.stack((columns.full, columns.outline, columns.reference))
        # An exchange is whole or out, but for a pin.
        self.is_exchange = np.zeros(len(columns), np.bool_)
        if len(columns):
            exchange = np.array([name == "exchange" for name in columns.types], np.bool_)
            self.is_exchange = exchange[columns.source_type]
        self.sizes[1:, self.is_exchange & (pins == DROPPED)] = NEVER
        self.smallest = self.sizes.min(axis=0)
        self.level = pins.copy()
        self.kept_for = np.full(len(columns), NO_REASON)
        open_to = (dropped_for == NO_REASON) & (pins != FULL)
        self.open_to_choice = np.flatnonzero(open_to)
        held = np.bincount(columns.band, weights=tokens, minlength=len(BANDS)).tolist()
        self.used = [int(held[c]) + overheads.in_band(name) for c, name in enumerate(BANDS)]
        self.floor = [band.min_tokens for band in profile.bands]
        self.target = [band.target_tokens for band in profile.bands]
        self.ceiling = [band.max_tokens for band in profile.bands]
        self.total = profile.total_token_budget
        self.held = self._reserve_floors()
        left = headroom.tokens if headroom else 0
        self.protected = headroom.protected if headroom else np.zeros(len(columns), np.bool_)
        self.open_total = self.total - left
        self.open_ceiling = [*self.ceiling]
        self.open_ceiling[SITUATIONAL] -= left
        targets = np.array(self.target, np.int64)
        self.ref_share, self.type_share = (
            targets // REF_SHARE,
            targets * (TYPE_SHARE - 1) // TYPE_SHARE,
        )
        self.by_ref = np.zeros((len(BANDS), columns.source_ref.max(initial=0) + 1), np.int64)
        self.by_type = np.zeros((len(BANDS), len(columns.types) + 1), np.int64)
        self.waited = np.zeros(len(columns), np.bool_)
        self.rank = np.full(len(columns), -1)

    def _reserve_floors(self) -> list[int]:
        """Reserve the floors as far as there are facts to fill them, and room beside what is pinned.

        Where that room is too small for all floors, each gets its share of it. The reserve is for the answer.
        """
        there = np.bincount(
            self.columns.band[self.open_to_choice],
            weights=self.columns.full[self.open_to_choice],
            minlength=len(BANDS),
        ).tolist()
        there[_RESERVE] = self.floor[_RESERVE]
        wanted = [
            min(max(floor - used, 0), int(most))
            for floor, used, most in zip(self.floor, self.used, there, strict=True)
        ]
        room, needed = max(self.total - sum(self.used), 0), sum(wanted)
        if room < needed:
            wanted = [tokens * room // needed for tokens in wanted]
        return [used + more for used, more in zip(self.used, wanted, strict=True)]

    def fill(self, ranked: Ints) -> None:
        """Take facts, best first: to the floors, to the targets, to the ceilings, then what had to wait."""
        ceilings = [max(pair) for pair in zip(self.ceiling, self.used, strict=True)]
        self.rank[ranked] = np.arange(len(ranked))
        for stage, limit in enumerate((self.floor, self.target, ceilings), 1):
            for caps in (2, 1, 0):
                ranked = self._pass(ranked, limit, stage, caps)
        # No fact is left that could fill the rest of its own floor: that room is everybody's.
        self.held = [*self.used]
        self.held[_RESERVE] = max(self.used[_RESERVE], self.floor[_RESERVE])
        self._pass(ranked, ceilings, 3, 0)

    def _pass(self, ranked: Ints, limit: Sequence[int], stage: int, caps: int) -> Ints:
        """Offer facts to bands that use less than ``limit``; return those that are not whole after it.

        With two ``caps`` a source type and a source reference hold no more than their share, with one the
        reference alone.
        """
        columns = self.columns
        near = self._find_hopeful(ranked, limit, caps)
        for start in range(0, len(near), _CHUNK):
            chunk = near[start : start + _CHUNK]
            if start:
                chunk = self._find_hopeful(chunk, limit, caps)
            for i, code in zip(chunk.tolist(), columns.band[chunk].tolist(), strict=True):
                if self.used[code] < limit[code]:
                    self._offer(i, code, stage, caps)
        left: Ints = ranked[self.level[ranked] != FULL]
        return left

    def _find_hopeful(self, ranked: Ints, limit: Sequence[int], caps: int) -> Ints:
        """Return the facts that bands still have room for, and their sources a share."""
        rooms = [
            self._room(code, protected=True) if self.used[code] < limit[code] else -1
            for code in range(len(BANDS))
        ]
        gain = np.where(self.level[ranked] == DROPPED, self.smallest[ranked], 0)
        near: Ints = ranked[gain <= np.array(rooms)[self.columns.band[ranked]]]
        if not caps or not len(near):
            return near
        over = self._are_over_share(near, self.smallest[near], caps) & ~self.protected[near]
        self.waited[near[over]] = True
        hopeful: Ints = near[~over]
        return hopeful

    def _room(self, code: int, *, protected: bool) -> int:
        """Return how many tokens a band may still take."""
        ceiling = self.ceiling[code] if protected else self.open_ceiling[code]
        total = self.total if protected else self.open_total
        used, held = self.used[code], self.held[code]
        beyond = max(total - sum(self.held), 0)
        room = min(held - used + beyond, ceiling - used)
        if protected or used >= self.floor[code]:
            return room
        # No headroom is taken below a floor; the fact that reaches it may pass it.
        return max(room, min(held - used + self.total - sum(self.held), self.ceiling[code] - used))

    def _offer(self, i: int, code: int, stage: int, caps: int) -> None:
        """Take the fullest level of a fact that fits."""
        now, is_protected = int(self.level[i]), bool(self.protected[i])
        room = self._room(code, protected=is_protected)
        sizes = self.sizes[:, i].tolist()
        has = 0 if now == DROPPED else sizes[now]
        for level in range(len(sizes) if now == DROPPED else now):
            if sizes[level] - has <= room:
                ref, kind = self.columns.source_ref[i], self.columns.source_type[i]
                if caps and not is_protected and self._is_over_share(i, code, sizes[level], caps):
                    self.waited[i] = True
                    return
                self.by_ref[code, ref] += sizes[level] - has
                self.by_type[code, kind] += sizes[level] - has
                self.level[i] = level
                self.used[code] += sizes[level] - has
                self.held[code] = max(self.held[code], self.used[code])
                if self.kept_for[i] == NO_REASON:
                    self.kept_for[i] = stage
                return

    def _is_over_share(self, i: int, code: int, tokens: int, caps: int) -> bool:
        """Whether the fact's source has its share of the band, as :meth:`_are_over_share` says of many."""
        of_ref = int(self.by_ref[code, self.columns.source_ref[i]])
        if of_ref and of_ref + tokens > self.ref_share[code]:
            return True
        of_type = int(self.by_type[code, self.columns.source_type[i]])
        is_capped = caps > 1 and of_type > 0 and not self.is_exchange[i]
        return bool(is_capped and of_type + tokens > self.type_share[code])

    def _are_over_share(self, at: Ints, tokens: Ints, caps: int) -> Flags:
        """Return whose source has its share of the band; its best fact is never held back."""
        columns, code = self.columns, self.columns.band[at]
        of_ref = self.by_ref[code, columns.source_ref[at]]
        over: Flags = (of_ref > 0) & (of_ref + tokens > self.ref_share[code])
        if caps > 1:
            of_type = self.by_type[code, columns.source_type[at]]
            # What the agent did is about many sources.
            is_capped = ~self.is_exchange[at]
            over = over | (is_capped & (of_type > 0) & (of_type + tokens > self.type_share[code]))
        return over

    def reasons(self, ruled_out: Ints) -> Ints:
        """Return why each fact is out that is out."""
        rooms = np.array([c - u for c, u in zip(self.ceiling, self.used, strict=True)])
        why = np.where(self.smallest > rooms[self.columns.band], _CEILING, BUDGET)
        kept = np.flatnonzero((self.level != DROPPED) & (self.rank >= 0))
        last = np.full(len(BANDS), -1)
        np.maximum.at(last, self.columns.band[kept], self.rank[kept])
        # A cap decided where its band took something that is worth less.
        waited = np.flatnonzero(self.waited)
        why[waited[self.rank[waited] < last[self.columns.band[waited]]]] = _SOURCE_CAP
        return np.where(ruled_out == NO_REASON, why, ruled_out)


def _pinned_message(
    columns: FactColumns, pinned: Flags, tokens: Ints, over: int, overheads: Overheads
) -> str:
    at = np.flatnonzero(pinned).tolist()
    at.sort(key=lambda i: (-int(tokens[i]), i))
    named = ", ".join(f"{columns.refs[i]} ({int(tokens[i]):,})" for i in at)
    return (
        f"The pinned facts need {int(tokens.sum()):,} tokens, and tool definitions and answer"
        f" {overheads.total:,}: {over:,} more than the budget. Pinned facts are never dropped. Unpin some"
        " (cockpit packet pin FACT), --off shorten AGENTS.md or .cockpit/context.md, set a larger"
        " ORIENTATION_TOKEN_BUDGET, or approve a profile change with a larger budget; then resume the"
        f" session. Largest first: {named}."
    )

"""The packet of a wave that appends, where its session has few facts and room for all of them.

That is nearly every wave of a short session. Whatever is not so simple is left to
:mod:`cockpit.orient.epochs`, which makes the same packet, byte for byte. See ``docs/reference/kernel.md``,
epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.fenced_text import FENCED_IN_HEAD_BANDS, HEAD_BANDS
from cockpit.orient import epochs
from cockpit.orient.compile_packet import ALGORITHM, NOT_RENDERED
from cockpit.orient.epoch_inputs import Standing
from cockpit.orient.fact_columns import FactColumns
from cockpit.orient.greedy_fill import FULL, OUTLINE
from cockpit.orient.small_packet import (
    BUDGET,
    CODES,
    DUPLICATE,
    KEPT,
    NEVER,
    FewFacts,
    Limits,
    Offer,
    Taken,
    take_all,
)
from cockpit.store.context.facts import LEVELS
from cockpit.store.context.packet_epoch import (
    APPENDED,
    CachePrices,
    Change,
    Epoch,
    SpentFacts,
)
from cockpit.store.context.packets import (
    DIFF,
    REASONS,
    Entry,
    Packet,
    PacketBand,
    Rendering,
    detail_of,
)
from cockpit.store.context.profile_model import BANDS, Profile, check

_REFERENCE = 2
_HEAD_CODES = frozenset(CODES[name] for name in HEAD_BANDS)


def compile_wave(
    facts: FactColumns | FewFacts,
    profile: Profile,
    ordinal: int,
    standing: Standing,
    *,
    rendering: Rendering = NOT_RENDERED,
) -> Packet:
    """Compile the packet of wave ``ordinal`` as :func:`cockpit.orient.epochs.compile_wave` does."""
    if isinstance(facts, FactColumns):
        return epochs.compile_wave(facts, profile, ordinal, standing, rendering=rendering)
    packet = _append_all(facts, profile, ordinal, standing, rendering)
    return packet or epochs.compile_wave(
        facts.columns, profile, ordinal, standing, rendering=rendering
    )


def _append_all(
    facts: FewFacts, profile: Profile, ordinal: int, standing: Standing, rendering: Rendering
) -> Packet | None:
    """Return the packet of a wave that appends all that is new, or begins an epoch with all that there is.

    None for any other wave.
    """
    check(profile)
    before = standing.before
    if before is None or before.epoch is None or standing.head != before.epoch.head:
        return None
    if (before.profile_id, before.profile_digest) != (profile.profile_id, profile.digest):
        return None
    wave = _Wave(facts, profile, ordinal, rendering, before, before.in_force())
    if wave.repeats_ids():
        return None
    new = wave.list_new()
    if wave.changes_head(new):
        return None
    prices = standing.prices or profile.cache
    spent = standing.find_spent(facts, ordinal)
    fresh = wave.take_fresh(new, spent, prices, before.epoch)
    if fresh is None:
        return None
    replaced = wave.find_replaced(new)
    pairs = [(facts.ids[row], base) for row, base in replaced.items()]
    changes = tuple(standing.count_changes(pairs[: epochs.MOST_CHANGES]))
    added = wave.append(new, replaced, changes, fresh)
    if added is None:
        return None
    stale = max(sum(added.used) - sum(fresh.used), 0)
    anew = wave.count_anew(fresh)
    rent = before.epoch.rent + prices.read * stale
    epoch = Epoch(
        first=before.epoch.first,
        reason=APPENDED,
        begun=before.epoch.begun or before.token_used,
        previous=before.digest,
        head=standing.head,
        cold=standing.cold,
        stale=stale,
        fresh=anew,
        rent=rent,
        changes=changes,
        spent=spent,
        prices=standing.prices,
    )
    if stale and (standing.cold or rent >= prices.write * anew):
        reason = "cold" if standing.cold else "stale"
        return wave.begin(fresh, replace(epoch, first=ordinal, reason=reason, begun=0, rent=0))
    return wave.append_to(fresh, added, epoch)


class _Added(NamedTuple):
    """What a wave adds to the packet before it."""

    entries: Sequence[list[Entry]]
    """By band."""
    used: Sequence[int]
    dropped: Mapping[int, int]
    """Why each new fact is out, or :data:`KEPT`, by its place."""


class _Wave(Struct, frozen=True):
    """A wave in an epoch; facts are named by their places."""

    facts: FewFacts
    profile: Profile
    ordinal: int
    rendering: Rendering
    before: Packet
    shown: Mapping[str, tuple[str, Entry]]
    """What the packet before says, by fact id."""

    def repeats_ids(self) -> bool:
        """Whether two live facts have one id, which no store holds."""
        ids, superseded = self.facts.ids, self.facts.superseded
        if len(set(ids)) == len(ids):
            return False
        live = [name for name, is_out in zip(ids, superseded, strict=True) if not is_out]
        return len(set(live)) < len(live)

    def list_new(self) -> list[int]:
        """List the facts that the packet before does not show, or not as far as it must."""
        facts, last, shown = self.facts, self.before.ordinal, self.shown
        places = []
        for i, seen in enumerate(facts.seen):
            if facts.superseded[i] or not (seen > last or facts.pinned[i]):
                continue
            held = shown.get(facts.ids[i])
            if held is not None:
                detail = detail_of(held[1])
                enough = int(bool(facts.pinned[i] and facts.short[i]))
                if detail == 0 or (seen <= last and detail <= enough):
                    continue
            places.append(i)
        return places

    def changes_head(self, new: Sequence[int]) -> bool:
        """Whether the system text or what opens the messages would be another one."""
        facts = self.facts
        if any(facts.heads[i] or facts.types[i] == epochs.OPENING for i in new):
            return True
        head = {name for name, (band, _) in self.shown.items() if band in HEAD_BANDS}
        fenced = [i for i, name in enumerate(facts.types) if name in FENCED_IN_HEAD_BANDS]
        head.difference_update([facts.ids[i] for i in fenced if facts.bands[i] in _HEAD_CODES])
        live = [i for i, is_out in enumerate(facts.superseded) if not is_out]
        head.difference_update([facts.ids[i] for i in live if facts.heads[i]])
        return bool(head) and not head <= {facts.ids[i] for i in live}

    def take_fresh(
        self, new: Sequence[int], spent: SpentFacts, prices: CachePrices, epoch: Epoch
    ) -> Taken | None:
        """Take all as for the first packet of a later epoch, or None: with room left to append."""
        facts, profile, overheads = self.facts, self.profile, self.rendering.overheads
        taken, counted = overheads.total, set(new)
        for i, is_pinned in enumerate(facts.pinned):
            if i in counted or (is_pinned and not facts.superseded[i]):
                tokens = facts.full[i]
                taken += min(tokens, facts.outline[i]) if facts.short[i] else tokens
        room = max(profile.total_token_budget - taken, 0)
        grown = self.before.token_used - epoch.begun if epoch.begun else 0
        grown += sum(facts.full[i] for i in new)
        growth = max(grown // (self.ordinal - epoch.first), 1)
        budget = profile.total_token_budget - prices.room_to_append(room, growth, epochs.ROOM)
        return self._take_condensed(spent, Limits.of(profile, max(budget, 1)))

    def _take_condensed(self, spent: SpentFacts, limits: Limits) -> Taken | None:
        facts = self.facts
        everything = range(len(facts))
        if not (spent.ids or spent.left_out):
            taken = self._take(everything, self._offer(), limits)
            return taken and taken._replace(levels=[FULL] * len(facts))
        ids, brief, left_out = map(frozenset, (spent.ids, spent.brief, spent.left_out))
        full, outline, short = [*facts.full], [*facts.outline], [*facts.short]
        superseded, levels = [*facts.superseded], [FULL] * len(facts)
        for i, name in enumerate(facts.ids):
            is_pinned = facts.pinned[i]
            if name in ids:
                has_outline = outline[i] < NEVER
                is_free = not is_pinned and facts.reference[i] < NEVER
                if (not has_outline or name in brief) and is_free:
                    levels[i], full[i] = _REFERENCE, facts.reference[i]
                elif has_outline and (not is_pinned or short[i]):
                    levels[i], full[i] = OUTLINE, outline[i]
                if levels[i] != FULL:
                    outline[i], short[i] = NEVER, 0
            if name in left_out and not is_pinned:
                superseded[i] = 1
        taken = self._take(everything, Offer(full, outline, short, superseded), limits)
        if taken is None:
            return None
        dropped = [
            DUPLICATE if reason != KEPT and name in left_out and not facts.superseded[i] else reason
            for i, (reason, name) in enumerate(zip(taken.dropped, facts.ids, strict=True))
        ]
        return taken._replace(dropped=dropped, levels=levels)

    def _offer(self) -> Offer:
        facts = self.facts
        return Offer(facts.full, facts.outline, facts.short, facts.superseded)

    def _take(
        self,
        at: Sequence[int],
        offer: Offer,
        limits: Limits,
        carried: Sequence[int] = (0,) * len(BANDS),
    ) -> Taken | None:
        overheads = self.rendering.overheads
        return take_all(
            self.facts, self.profile, self.ordinal, overheads, at, offer, limits, carried
        )

    def find_replaced(self, new: Sequence[int]) -> dict[int, str]:
        """Find, for new facts, the fact of the packet before that each replaces."""
        facts = self.facts
        slots: dict[tuple[str, str], str] = {}
        for i, identity, _, entry in self._list_superseded():
            is_fenced = facts.types[i] not in epochs.UNFENCED
            if facts.keys[i] and is_fenced and detail_of(entry) == 0:
                slots[facts.keys[i], facts.refs[i]] = identity
        if not slots:
            return {}
        return {i: slots[slot] for i in new if (slot := (facts.keys[i], facts.refs[i])) in slots}

    def _list_superseded(self) -> list[tuple[int, str, str, Entry]]:
        """List (place, fact id, band, entry) of what the packet before says and no longer holds."""
        facts = self.facts
        if not any(facts.superseded):
            return []
        places = {identity: i for i, identity in enumerate(facts.ids)}
        return [
            (i, identity, band, entry)
            for identity, (band, entry) in self.shown.items()
            if (i := places.get(identity)) is not None and facts.superseded[i]
        ]

    def append(
        self,
        new: Sequence[int],
        replaced: Mapping[int, str],
        changes: Sequence[Change],
        fresh: Taken,
    ) -> _Added | None:
        """Return what to add to the packet before; None where it is not all, or not worth it."""
        facts, before = self.facts, self.before
        full, diffs = facts.full, set[int]()
        if changes:
            tokens = {change.fact_id: change.tokens for change in changes}
            full = [*full]
            for i in new:
                as_diff = tokens.get(facts.ids[i], -1)
                if 0 <= as_diff < full[i]:
                    full[i] = as_diff
                    diffs.add(i)
        carried = [band.used - before.overheads.in_band(band.name) for band in before.bands]
        limits = Limits.of(self.profile, self.profile.total_token_budget)
        chosen = self._take(new, self._offer()._replace(full=full), limits, carried)
        if chosen is None:
            return None
        dropped = dict(zip(new, chosen.dropped, strict=True))
        worth = sum(facts.full[i] for i, reason in dropped.items() if reason == KEPT)
        texts = (facts.full, facts.outline, facts.reference)
        if worth < sum(texts[fresh.levels[i]][i] for i in new if fresh.dropped[i] == KEPT):
            return None
        entries: list[list[Entry]] = [[] for _ in BANDS]
        bases: set[str] = set()
        for i, reason in dropped.items():
            if reason == KEPT:
                base = replaced.get(i, "")
                bases.add(base)
                level = DIFF if i in diffs else LEVELS[FULL]
                pinned, seen = bool(facts.pinned[i]), facts.seen[i]
                entries[facts.bands[i]].append(
                    Entry(facts.ids[i], level, full[i], pinned, seen, self.ordinal, base)
                )
        used = [*chosen.used]
        for i, identity, band, entry in self._list_superseded():
            if identity not in bases:
                gone = epochs.gone(identity, facts.refs[i], entry.ordinal, self.ordinal)
                entries[CODES[band]].append(gone)
                used[CODES[band]] += gone.tokens
        added = _Added(entries, used, dropped)
        return None if self._passes_limits(added) else added

    def _passes_limits(self, added: _Added) -> bool:
        """Whether the budget is passed, or a band's ceiling with facts that are not pinned now."""
        if sum(added.used) > self.profile.total_token_budget:
            return True
        limits = zip(self.profile.bands, self.before.bands, added.entries, added.used, strict=True)
        for band, old, new, tokens in limits:
            if tokens > band.max_tokens:
                now = self._pinned_now()
                entries = (*old.entries, *new)
                pinned = sum(entry.tokens for entry in entries if entry.fact_id in now)
                if tokens > pinned + self.rendering.overheads.in_band(band.name):
                    return True
        return False

    def _pinned_now(self) -> set[str]:
        facts = self.facts
        return {
            facts.ids[i]
            for i, is_pinned in enumerate(facts.pinned)
            if is_pinned and not facts.superseded[i]
        }

    def count_anew(self, fresh: Taken) -> int:
        """Count the tokens of a fresh packet that no cache has: all but the system text and the task."""
        facts = self.facts
        return sum(
            tokens
            for tokens, reason, is_in_head, name in zip(
                fresh.full, fresh.dropped, facts.heads, facts.types, strict=True
            )
            if reason == KEPT and not is_in_head and name != epochs.OPENING
        )

    def append_to(self, fresh: Taken, added: _Added, epoch: Epoch) -> Packet:
        """Build the packet that has the wave's entries behind those of the one before."""
        pinned, shown = self._pinned_now(), set[str]()
        entries: list[tuple[Entry, ...]] = []
        for old, more in zip(self.before.bands, added.entries, strict=True):
            kept = old.entries
            if any(entry.pinned != (entry.fact_id in pinned) for entry in kept):
                kept = tuple(
                    entry
                    if entry.pinned == (entry.fact_id in pinned)
                    else replace(entry, pinned=not entry.pinned)
                    for entry in kept
                )
            entries.append((*kept, *more))
            shown.update([entry.fact_id for entry in entries[-1]])
        missing = {
            i: added.dropped.get(i, fresh.dropped[i])
            for i, identity in enumerate(self.facts.ids)
            if identity not in shown
        }
        return self._build(entries, added.used, missing, epoch)

    def begin(self, fresh: Taken, epoch: Epoch) -> Packet:
        """Build the fresh packet."""
        facts = self.facts
        entries: list[list[Entry]] = [[] for _ in BANDS]
        missing: dict[int, int] = {}
        for i, reason in enumerate(fresh.dropped):
            if reason != KEPT:
                missing[i] = reason
                continue
            level, pinned = LEVELS[fresh.levels[i]], bool(facts.pinned[i])
            entries[facts.bands[i]].append(
                Entry(facts.ids[i], level, fresh.full[i], pinned, facts.seen[i])
            )
        return self._build([*map(tuple, entries)], fresh.used, missing, epoch)

    def _build(
        self,
        entries: Sequence[tuple[Entry, ...]],
        used: Sequence[int],
        missing: Mapping[int, int],
        epoch: Epoch,
    ) -> Packet:
        """``missing`` says why facts are not in it, by their places."""
        profile = self.profile
        lost, reasons = [0] * len(BANDS), [0] * len(REASONS)
        for i, reason in missing.items():
            lost[self.facts.bands[i]] += 1
            reasons[BUDGET if reason == KEPT else reason] += 1
        return Packet(
            ALGORITHM,
            self.ordinal,
            profile.profile_id,
            profile.version,
            profile.digest,
            profile.ranking,
            profile.total_token_budget,
            sum(used),
            tuple(
                PacketBand(
                    band.name,
                    band.min_tokens,
                    band.target_tokens,
                    band.max_tokens,
                    tokens,
                    dropped,
                    of_band,
                )
                for band, tokens, dropped, of_band in zip(
                    profile.bands, used, lost, entries, strict=True
                )
            ),
            tuple((name, count) for name, count in zip(REASONS, reasons, strict=True) if count),
            1_000_000,
            self.rendering,
            epoch,
        )

"""Few facts of a session as lists, and all of them taken into a packet, where there is room for all.

Arrays cost more for few facts than they save. What is taken here, and why a fact is out, is what
:mod:`cockpit.orient.select_facts` says where everything fits. See ``docs/reference/kernel.md``, compiler.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from cockpit.core.fenced_text import is_head
from cockpit.orient.fact_columns import FactColumns, columns_from_facts
from cockpit.orient.score_facts import by_age, plan_rules, weight_of
from cockpit.orient.spent_facts import SpendableFacts, is_spendable
from cockpit.store.context.facts import UTILITY_MAX, read_linked, select_linked_rows
from cockpit.store.context.packets import REASONS, Overheads
from cockpit.store.context.profile_model import BANDS, WEIGHT_ONE, Profile, Rule

MOST_FEW = 256
"""Facts from which arrays are faster."""

NEVER = 1 << 40
"""Tokens of a level that a fact does not have."""
BUDGET, CEILING, _, DUPLICATE, SUPERSEDED, LOW = range(len(REASONS))
KEPT = -1
CODES = {name: code for code, name in enumerate(BANDS)}
_RESERVE = CODES["reserve"]
_NOTHING_CARRIED = (0,) * len(BANDS)


class FewFacts:
    """The facts of a session at a wave as lists, in order of time; each has one item a fact.

    Tokens are those that a prompt renders. ``outline`` and ``reference`` are :data:`NEVER` where that level
    is missing or no shorter than the fuller one, as in :class:`~cockpit.orient.fact_columns.FactColumns`.
    """

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """``rows`` are those of :func:`~cockpit.store.context.facts.select_linked_rows`, in that order."""
        self._rows = rows
        self._columns: FactColumns | None = None
        fields = [list(values) for values in zip(*rows, strict=True)] or [[] for _ in range(18)]
        self.ids: list[str] = fields[0]
        self.types: list[str] = fields[1]
        self.refs: list[str] = fields[2]
        self.bands = [CODES[name] for name in fields[3]]
        self.heads = [*map(is_head, fields[3], self.types)]
        """Whether each is part of the system text."""
        self.seen: list[int] = fields[4]
        self.pinned: list[int] = fields[6]
        self.superseded: list[int] = fields[7]
        self.utility = [min(max(number, 0), UTILITY_MAX) for number in fields[8]]
        self.keys: list[str] = fields[12]
        self.clusters: list[int] = fields[13]
        self.full = [max(tokens, 0) for tokens in fields[14]]
        self.outline = [
            short if 0 < short < full else NEVER
            for short, full in zip(fields[15], self.full, strict=True)
        ]
        self.reference = [
            short if 0 < short < full and short < outline else NEVER
            for short, full, outline in zip(fields[16], self.full, self.outline, strict=True)
        ]
        self.short: list[int] = fields[17]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def columns(self) -> FactColumns:
        """The same facts as arrays."""
        if self._columns is None:
            self._columns = columns_from_facts([read_linked(row) for row in self._rows])
        return self._columns

    def list_spendable(self) -> SpendableFacts:
        """List the facts that can be spent."""
        at = [
            i
            for i, (name, seen) in enumerate(zip(self.types, self.seen, strict=True))
            if seen > 1 and not self.superseded[i] and is_spendable(name)
        ]
        return SpendableFacts(
            self.ids,
            at,
            [self.seen[i] for i in at],
            [self.full[i] for i in at],
            [self.types[i] for i in at],
            [self.outline[i] < NEVER for i in at],
            [bool(self.pinned[i]) for i in at],
        )


def load_few(connection: sqlite3.Connection, session_id: str, ordinal: int) -> FewFacts:
    """Load the facts that a session has at wave ``ordinal``, with their tokens as rendered."""
    return FewFacts(select_linked_rows(connection, session_id, ordinal))


class Offer(NamedTuple):
    """Facts as they compete; each list has one item a fact."""

    full: Sequence[int]
    outline: Sequence[int]
    short: Sequence[int]
    superseded: Sequence[int]


class Taken(NamedTuple):
    """What was taken of some facts, whole; lists have one item a fact."""

    full: Sequence[int]
    """Tokens of each fact as it was offered."""
    dropped: Sequence[int]
    """Why a fact is out, as an index of ``REASONS``; :data:`KEPT` for one that was taken."""
    used: Sequence[int]
    """Tokens by band, with overheads and all that is carried."""
    levels: Sequence[int] = ()
    """The level that stands in the place of the full one."""


class Limits(NamedTuple):
    """Tokens of the budget, and of each band's floor and ceiling."""

    total: int
    floors: Sequence[int]
    ceilings: Sequence[int]

    @classmethod
    def of(cls, profile: Profile, budget: int) -> Limits:
        """Return the limits of a profile that is scaled to another budget."""
        old, bands = profile.total_token_budget, profile.bands
        return cls(
            budget,
            [band.min_tokens * budget // old for band in bands],
            [band.max_tokens * budget // old for band in bands],
        )


def take_all(
    facts: FewFacts,
    profile: Profile,
    ordinal: int,
    overheads: Overheads,
    at: Sequence[int],
    offer: Offer,
    limits: Limits,
    carried: Sequence[int] = _NOTHING_CARRIED,
) -> Taken | None:
    """Take every fact at ``at`` that may be taken, whole; None where they have no room."""
    full, outline, short, superseded = offer
    admitted = _list_admitted(facts, profile, ordinal, at, superseded)
    repeats = _find_repeats(facts, at, superseded)
    there, pinned = [0] * len(BANDS), [*carried]
    dropped = []
    for i, is_admitted in zip(at, admitted, strict=True):
        reason, band = KEPT, facts.bands[i]
        if superseded[i]:
            reason = SUPERSEDED
        elif facts.pinned[i]:
            least = full[i]
            if short[i] and outline[i] < NEVER:
                least = outline[i]
                if least > full[i]:
                    return None
                there[band] += full[i] - least
            pinned[band] += least
        elif i in repeats:
            reason = DUPLICATE
        elif not is_admitted:
            reason = LOW
        elif band == _RESERVE:
            reason = CEILING
        else:
            there[band] += full[i]
        dropped.append(reason)
    for code, name in enumerate(BANDS):
        pinned[code] += overheads.in_band(name)
    if not _has_room(limits, pinned, there):
        return None
    used = [held + more for held, more in zip(pinned, there, strict=True)]
    return Taken(full, dropped, used)


def _list_admitted(
    facts: FewFacts,
    profile: Profile,
    ordinal: int,
    at: Sequence[int],
    superseded: Sequence[int],
) -> list[bool]:
    """Return for each fact whether a rule admits it, with a score above 0."""
    types = tuple(dict.fromkeys(facts.types))
    plan = plan_rules(profile, types)
    rests, rules = dict(zip(types, plan.for_rest.tolist(), strict=True)), plan.rules
    restricted: dict[str, list[int]] = {}
    for place, code in plan.restricted:
        restricted.setdefault(types[code], []).append(place)
    newer = _count_newer(facts, at, superseded)
    admitted = []
    for i in at:
        name = facts.types[i]
        place = rests[name]
        for other in restricted.get(name, ()):
            if _fits(facts, rules[other], i, ordinal):
                place = other
                break
        if place < 0:
            admitted.append(False)
            continue
        rule = rules[place]
        ages = _ages(*weight_of(rule), _round_up(ordinal))
        score = facts.utility[i] * ages[max(ordinal - facts.seen[i], 0)]
        behind = newer.get(i, 0)
        novelty = WEIGHT_ONE
        if behind:
            lost = WEIGHT_ONE - WEIGHT_ONE // (behind + 1)
            novelty -= rule.novelty_weight * lost // WEIGHT_ONE
        admitted.append(score * novelty >= WEIGHT_ONE**4)
    return admitted


def _fits(facts: FewFacts, rule: Rule, i: int, ordinal: int) -> bool:
    when = rule.predicate
    return not (
        (when.band and facts.bands[i] != CODES[when.band])
        or (when.min_utility and facts.utility[i] < when.min_utility)
        or (when.max_age_waves is not None and ordinal - facts.seen[i] > when.max_age_waves)
        or (when.ref_prefix and not facts.refs[i].startswith(when.ref_prefix))
    )


def _count_newer(facts: FewFacts, at: Sequence[int], superseded: Sequence[int]) -> dict[int, int]:
    """Count the newer near-duplicates of live facts that have some."""
    keyed: dict[int | str, list[int]] = {}
    for i in at:
        if not superseded[i]:
            cluster = facts.clusters[i] or facts.keys[i]
            if cluster:
                keyed.setdefault(cluster, []).append(i)
    return {
        i: len(places) - 1 - place
        for places in keyed.values()
        if len(places) > 1
        for place, i in enumerate(places)
    }


def _find_repeats(facts: FewFacts, at: Sequence[int], superseded: Sequence[int]) -> set[int]:
    """Find live facts, not pinned, of whose place a later wave has seen more."""
    keyed = [i for i in at if facts.keys[i] and not superseded[i]]
    if len({facts.keys[i] for i in keyed}) == len(keyed):
        return set()
    newest = {_place(facts, i): facts.seen[i] for i in keyed}
    return {i for i in keyed if facts.seen[i] < newest[_place(facts, i)] and not facts.pinned[i]}


def _place(facts: FewFacts, i: int) -> tuple[str, str, str]:
    return facts.keys[i], facts.refs[i], facts.types[i]


def _has_room(limits: Limits, pinned: Sequence[int], there: Sequence[int]) -> bool:
    """Whether all fits below the ceilings and beside the floors, as high as there are facts to fill them."""
    fill = [*there]
    fill[_RESERVE] = limits.floors[_RESERVE]
    wanted = [
        min(max(floor - held, 0), most)
        for floor, held, most in zip(limits.floors, pinned, fill, strict=True)
    ]
    room, reserved = max(limits.total - sum(pinned), 0), sum(wanted)
    if room < reserved:
        wanted = [tokens * room // reserved for tokens in wanted]
    total = 0
    for held, more, kept, ceiling in zip(pinned, there, wanted, limits.ceilings, strict=True):
        if more > 0 and held + more > ceiling:
            return False
        total += held + max(more, kept)
    return total <= limits.total


def _round_up(ordinal: int) -> int:
    return ordinal | 63


@lru_cache(maxsize=256)
def _ages(weight: int, span: int, oldest: int) -> list[int]:
    return [int(number) for number in by_age(weight, span, oldest)]

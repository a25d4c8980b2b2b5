"""The score of a fact under a profile, in whole numbers.

``score = utility × priority × (1 + risk) × novelty × recency``, the factors in thousandths and the
product rounded down once, so that a score is the same on every machine and no float is compared.
See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from cockpit.orient.fact_columns import FactColumns, Flags, Ints
from cockpit.orient.radix_sort import radix_order
from cockpit.store.context.facts import UTILITY_MAX
from cockpit.store.context.kept_by_identity import KeptByIdentity
from cockpit.store.context.profile_model import (
    BANDS,
    PRIORITY_MAX,
    WEIGHT_ONE,
    Predicate,
    Profile,
    Rule,
)

SCORE_MAX = UTILITY_MAX * (PRIORITY_MAX // WEIGHT_ONE) * 2

_DECAY = np.array(
    [1000, 958, 917, 878, 841, 805, 771, 738, 707, 677, 648, 621, 595, 569, 545, 522], np.int64
)
"""``1000 × 2^(-i/16)``: written down, because a library's power function may differ by a bit."""

_AGES = 63
"""Ages are worked out for so many waves at once, to be used again in those that follow."""

_UNRULED = Rule("", "", Predicate(), WEIGHT_ONE, 0, 0, 0)
"""The rule of a fact whose source type has no rule."""


class Scores(Struct, frozen=True):
    """``score`` is 0 to :data:`SCORE_MAX` a fact. ``admitted`` is False where the profile's rules
    for its source type are all disabled or restricted to other facts, or where the score is 0."""

    score: Ints
    admitted: Flags


def score_facts(columns: FactColumns, profile: Profile, ordinal: int) -> Scores:
    """Score every fact as of wave ``ordinal``. Pure."""
    rules, index = _matched(columns, profile, ordinal)
    admitted = index >= 0
    row = np.where(admitted, index, 0)
    age = np.maximum(ordinal - columns.ordinal, 0)
    oldest = int(age.max(initial=0)) | _AGES
    aged = np.stack([by_age(*weight_of(rule), oldest) for rule in rules])
    novelty = _novelty(columns, np.array([rule.novelty_weight for rule in rules])[row])
    score = columns.utility * aged[row, age] * novelty // WEIGHT_ONE**4
    return Scores(score, admitted & (score > 0))


def weight_of(rule: Rule) -> tuple[int, int]:
    """Priority × risk of a rule's facts, and the waves in which recency halves."""
    return rule.priority_weight * (WEIGHT_ONE + rule.risk_weight), rule.recency_half_life


@lru_cache(maxsize=256)
def by_age(weight: int, span: int, oldest: int) -> Ints:
    """``weight`` × recency of a rule's facts, by their age in waves, 0 to ``oldest``; not to be changed.

    Recency is 1000, halved for every ``span`` waves; 1000 throughout where that is 0.
    """
    age = np.arange(oldest + 1, dtype=np.int64)
    if span == 0:
        return np.full(len(age), weight * WEIGHT_ONE)
    steps = age % span * len(_DECAY) // span
    return weight * (_DECAY[steps] >> np.minimum(age // span, 63))


def _matched(columns: FactColumns, profile: Profile, ordinal: int) -> tuple[list[Rule], Ints]:
    """The rules in play, and for each fact the index of its rule or -1.

    Of the rules that fit a fact, the one of the highest priority counts (ties: first by id).
    """
    plan = plan_rules(profile, columns.types)
    index = np.full(len(columns), -1, np.int64)
    for place, code in plan.restricted:
        fits = (columns.source_type == code) & (index < 0)
        fits = _restricted(columns, plan.rules[place], fits, ordinal)
        index = np.where(fits, place, index)
    if not columns.types:
        return plan.rules, index
    return plan.rules, np.where(index < 0, plan.for_rest[columns.source_type], index)


class RulePlan(NamedTuple):
    """Which rules are in play for facts of some source types."""

    types: tuple[str, ...]
    rules: list[Rule]
    restricted: list[tuple[int, int]]
    """(place of the rule, code of its source type), in the order in which they are tried."""
    for_rest: Ints
    """By code: the place of the rule for facts that no restricted rule fits, or -1."""


_plans: KeptByIdentity[tuple[Rule, ...], RulePlan] = KeptByIdentity(64)
"""By the rules of a profile: the facts of one wave mostly have the types of those before."""


def plan_rules(profile: Profile, types: tuple[str, ...]) -> RulePlan:
    """Return which rules of a profile are in play for facts of these source types."""
    plan = _plans.get(profile.rules)
    if plan is None or plan.types != types:
        plan = _plans.put(profile.rules, _plan_rules(profile.rules, types))
    return plan


def _plan_rules(of_profile: tuple[Rule, ...], types: tuple[str, ...]) -> RulePlan:
    rules = [_UNRULED]
    named = {rule.source_type for rule in of_profile}
    for_rest = [-1 if name in named else 0 for name in types]
    restricted: list[tuple[int, int]] = []
    codes = {name: code for code, name in enumerate(types)}
    for rule in sorted(of_profile, key=lambda rule: (-rule.priority_weight, rule.rule_id)):
        code = codes.get(rule.source_type)
        if code is None or not rule.enabled or for_rest[code] >= 0:
            continue
        if rule.predicate == Predicate():
            for_rest[code] = len(rules)
        else:
            restricted.append((len(rules), code))
        rules.append(rule)
    return RulePlan(types, rules, restricted, np.array(for_rest, np.int64))


def _restricted(columns: FactColumns, rule: Rule, fits: Flags, ordinal: int) -> Flags:
    when = rule.predicate
    if when.band:
        fits = fits & (columns.band == BANDS.index(when.band))
    if when.min_utility:
        fits = fits & (columns.utility >= when.min_utility)
    if when.max_age_waves is not None:
        fits = fits & (ordinal - columns.ordinal <= when.max_age_waves)
    if when.ref_prefix:
        places = np.flatnonzero(fits)
        named = [columns.refs[i].startswith(when.ref_prefix) for i in places.tolist()]
        fits[places] = np.array(named, np.bool_)
    return fits


def _novelty(columns: FactColumns, weight: Ints) -> Ints:
    """Thousandths: 1000 for the newest fact of a near-duplicate cluster, less for each older one.

    A cluster is live facts alone, fixed before anything is selected, so that no order of selection
    enters a score.
    """
    keyed = ~columns.superseded & (columns.cluster >= 0)
    sizes = np.bincount(columns.cluster[keyed], minlength=1)
    factor = np.full(len(columns), WEIGHT_ONE, np.int64)
    if sizes.max() < 2:
        return factor
    shared = np.flatnonzero(keyed)
    shared = shared[sizes[columns.cluster[shared]] > 1]
    grouped = shared[radix_order(columns.cluster[shared])]
    sizes[sizes < 2] = 0
    newer = np.repeat(np.cumsum(sizes)[sizes > 0], sizes[sizes > 0]) - 1 - np.arange(len(grouped))
    novelty = WEIGHT_ONE // (newer + 1)
    factor[grouped] = WEIGHT_ONE - weight[grouped] * (WEIGHT_ONE - novelty) // WEIGHT_ONE
    return factor

"""The worth of a fact under a profile, in whole numbers.

``score = utility × priority × (1 + risk) × novelty × recency``, the factors in thousandths and the product
rounded down once; ``worth = score × (½ + relevance) × 1 / (1 + age / 30)``, times a factor for
what the agent works with. A number is the same on every machine, and no float is compared. See
``docs/reference/kernel.md``, the compiler.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cockpit.orient.fact_columns import FactColumns, Flags, Ints
from cockpit.store.context.facts import UTILITY_MAX
from cockpit.store.context.profile_model import (
    BANDS,
    PRIORITY_MAX,
    WEIGHT_ONE,
    Predicate,
    Profile,
    Rule,
)

SCORE_MAX = UTILITY_MAX * (PRIORITY_MAX // WEIGHT_ONE) * 2
AGE_WAVES = 30
"""Waves after which a fact is worth half."""
RELEVANCE_ONE = 1_000
_PRODUCT_ONE = 1_000_000_000_000
"""1 as a product of four factors in thousandths."""

_DECAY = np.array(
    [1000, 958, 917, 878, 841, 805, 771, 738, 707, 677, 648, 621, 595, 569, 545, 522], np.int64
)
"""``1000 × 2^(-i/16)``: written down, because a library's power function may differ by a bit."""
_UNRULED = Rule("", "", Predicate(), WEIGHT_ONE, 0, 0, 0)
"""The rule of a fact whose source type has no rule."""


class Relevance(Struct, frozen=True):
    """How facts stand to what the session is about; arrays have one item a fact."""

    terms: Ints
    """0 to :data:`RELEVANCE_ONE`: how well the fact's text answers the words of the task."""
    factor: Ints
    """How many times more it is worth for a file that the agent works with; 1 for any other fact."""

    @classmethod
    def none(cls, count: int) -> Relevance:
        """Return that of facts of which nothing is known."""
        return cls(np.zeros(count, np.int64), np.ones(count, np.int64))


class Scores(Struct, frozen=True):
    """``score`` is 0 to :data:`SCORE_MAX` a fact, before relevance and age; ``worth`` after them.

    ``admitted`` is False where the profile's rules for a fact's source type are all disabled or restricted to
    other facts, or where the score is 0.
    """

    score: Ints
    worth: Ints
    admitted: Flags


def score_facts(
    columns: FactColumns, profile: Profile, ordinal: int, relevance: Relevance | None = None
) -> Scores:
    """Score every fact as of wave ``ordinal``. Pure."""
    rules, index = _match_rules(columns, profile, ordinal)
    row = np.where(index >= 0, index, 0)
    age = np.maximum(ordinal - columns.ordinal, 0)
    weight = _per_fact([r.priority_weight * (WEIGHT_ONE + r.risk_weight) for r in rules], row)
    novelty = _novelty(columns, _per_fact([rule.novelty_weight for rule in rules], row))
    recency = _recency(_per_fact([rule.recency_half_life for rule in rules], row), age)
    score: Ints = columns.utility * (weight * recency) * novelty // _PRODUCT_ONE
    relevance = relevance or Relevance.none(len(columns))
    near = RELEVANCE_ONE // 2 + relevance.terms
    worth: Ints = score * near * relevance.factor * AGE_WAVES // (AGE_WAVES + age)
    return Scores(score, worth, (index >= 0) & (score > 0))


def _per_fact(of_rules: list[int], row: Ints) -> Ints:
    return np.array(of_rules, np.int64)[row]


def _recency(half_life: Ints, age: Ints) -> Ints:
    """Return thousandths: 1000, halved for every ``half_life`` waves; 1000 throughout where that is 0."""
    span = np.maximum(half_life, 1)
    halved = _DECAY[age % span * len(_DECAY) // span] >> np.minimum(age // span, 63)
    return np.where(half_life > 0, halved, WEIGHT_ONE)


def _match_rules(columns: FactColumns, profile: Profile, ordinal: int) -> tuple[list[Rule], Ints]:
    """Return the rules in play, and for each fact the index of its rule or -1.

    Of the rules that fit a fact, the one of the highest priority counts (ties: first by id).
    """
    rules = [_UNRULED]
    named = np.array([name in {r.source_type for r in profile.rules} for name in columns.types])
    index = np.full(len(columns), -1, np.int64)
    if len(columns):
        index[~named[columns.source_type]] = 0
    codes = {name: code for code, name in enumerate(columns.types)}
    for rule in sorted(profile.rules, key=lambda rule: (-rule.priority_weight, rule.rule_id)):
        code = codes.get(rule.source_type)
        if code is not None and rule.enabled:
            open_to = (columns.source_type == code) & (index < 0)
            index[_restrict(columns, rule.predicate, open_to, ordinal)] = len(rules)
            rules.append(rule)
    return rules, index


def _restrict(columns: FactColumns, when: Predicate, fits: Flags, ordinal: int) -> Flags:
    if when.band:
        fits = fits & (columns.band == BANDS.index(when.band))
    if when.min_utility:
        fits = fits & (columns.utility >= when.min_utility)
    if when.max_age_waves is not None:
        fits = fits & (ordinal - columns.ordinal <= when.max_age_waves)
    if when.ref_prefix:
        places = np.flatnonzero(fits)
        named = [columns.refs[i].startswith(when.ref_prefix) for i in places.tolist()]
        fits = fits.copy()
        fits[places] = named
    return fits


def _novelty(columns: FactColumns, weight: Ints) -> Ints:
    """Return thousandths: 1000 for the newest fact of a near-duplicate cluster, less for each older one.

    A cluster is live facts alone, fixed before anything is selected, so that no order of selection enters a
    score.
    """
    factor = np.full(len(columns), WEIGHT_ONE, np.int64)
    keyed = ~columns.superseded & (columns.cluster >= 0)
    sizes = np.bincount(columns.cluster[keyed], minlength=1)
    if sizes.max() < 2:
        return factor
    shared = np.flatnonzero(keyed)
    shared = shared[sizes[columns.cluster[shared]] > 1]
    grouped = shared[np.argsort(columns.cluster[shared], kind="stable")]
    sizes[sizes < 2] = 0
    newer = np.repeat(np.cumsum(sizes)[sizes > 0], sizes[sizes > 0]) - 1 - np.arange(len(grouped))
    novelty = WEIGHT_ONE // (newer + 1)
    factor[grouped] = WEIGHT_ONE - weight[grouped] * (WEIGHT_ONE - novelty) // WEIGHT_ONE
    return factor

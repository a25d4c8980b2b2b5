"""Scores: which rule counts, and how priority, risk, novelty and age enter."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from orient_made import fact, profile, rule

from cockpit.orient.fact_columns import columns_from_facts
from cockpit.orient.score_facts import SCORE_MAX, score_facts
from cockpit.store.context.facts import SessionFact
from cockpit.store.context.profile_model import Predicate, Rule


def scored(facts: Sequence[SessionFact], *rules: Rule, ordinal: int = 1) -> list[int | None]:
    """Scores in order of time; None where the fact is not admitted."""
    found = score_facts(columns_from_facts(facts), profile({}, rules=rules), ordinal)
    return [
        score if admitted else None
        for score, admitted in zip(found.score.tolist(), found.admitted.tolist(), strict=True)
    ]


def test_priority_and_risk_multiply() -> None:
    weighted = rule("made", priority_weight=1_500, risk_weight=200)
    assert scored([fact("a", utility=100_000)], weighted) == [180_000]


def test_the_largest_score_stays_within_its_bound() -> None:
    heaviest = rule("made", priority_weight=4_000, risk_weight=1_000)
    assert scored([fact("a", utility=1_000_000)], heaviest) == [SCORE_MAX]


@pytest.mark.parametrize(
    ("age", "score"), [(0, 800_000), (1, 672_800), (4, 400_000), (8, 200_000), (400, None)]
)
def test_a_fact_halves_with_every_half_life(age: int, score: int | None) -> None:
    aging = rule("made", recency_half_life=4)
    assert scored([fact("a", utility=800_000)], aging, ordinal=1 + age) == [score]


def test_older_near_duplicates_fall_and_the_newest_does_not() -> None:
    facts = [fact(f"v{i}", key="src/a.py", position=i, utility=600_000) for i in range(1, 4)]
    assert scored(facts, rule("made", novelty_weight=1_000)) == [199_800, 300_000, 600_000]
    assert scored(facts, rule("made", novelty_weight=500)) == [400_200, 450_000, 600_000]


def test_what_is_superseded_or_without_a_key_is_in_no_cluster() -> None:
    facts = [
        fact("old", key="src/a.py", position=1, superseded=True),
        fact("new", key="src/a.py", position=2),
        fact("one", position=3),
        fact("two", position=4),
    ]
    assert scored(facts, rule("made", novelty_weight=1_000)) == [500_000] * 4


def test_of_the_rules_that_fit_the_weightiest_counts() -> None:
    light = rule("made", rule_id="a", priority_weight=500)
    heavy = rule("made", rule_id="b", priority_weight=2_000)
    assert scored([fact("a", utility=10)], light, heavy) == [20]
    heavy = rule("made", rule_id="b", priority_weight=2_000, enabled=False)
    assert scored([fact("a", utility=10)], light, heavy) == [5]


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        (Predicate(band="situational"), True),
        (Predicate(band="identity"), False),
        (Predicate(ref_prefix="made:"), True),
        (Predicate(ref_prefix="file:"), False),
        (Predicate(min_utility=500_000), True),
        (Predicate(min_utility=500_001), False),
        (Predicate(max_age_waves=2), True),
        (Predicate(max_age_waves=1), False),
    ],
)
def test_a_predicate_restricts_its_rule(when: Predicate, fits: bool) -> None:
    narrow = rule("made", rule_id="narrow", predicate=when, priority_weight=2_000)
    assert scored([fact("a")], narrow, ordinal=3) == [1_000_000 if fits else None]
    assert scored([fact("a")], narrow, rule("made"), ordinal=3) == [1_000_000 if fits else 500_000]

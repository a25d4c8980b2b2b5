"""The allocator: pinned first, floors kept, targets, ceilings, levels, ties, and reasons."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from orient_made import fact, kept, many, profile, rule, used

from cockpit.orient.compile_packet import compile_packet
from cockpit.orient.explain_packet import explain_packet
from cockpit.orient.select_facts import PinnedOverBudget

ONE = {"situational": (0, 1_000, 1_000)}


def test_the_best_are_kept_and_the_rest_are_dropped_for_budget() -> None:
    facts = many(20)
    packet = compile_packet(facts, profile({"situational": (0, 500, 2_000)}, total=500), 1)
    assert kept(packet, "situational") == [(f.fact_id, "full") for f in facts[:5]]
    assert packet.drops == (("budget", 15),)


def test_targets_come_before_worth_and_worth_before_nothing() -> None:
    rooms = {"situational": (0, 400, 1_000), "exploration": (0, 400, 1_000)}
    facts = [
        *many(20, utility=900_000),
        *(replace(f, utility=100_000 - f.position) for f in many(20, "exploration")),
    ]
    packet = compile_packet(facts, profile(rooms), 1)
    assert used(packet)["exploration"] == 400
    assert used(packet)["situational"] == 600


def test_the_reserve_stays_empty_and_nobody_uses_its_floor() -> None:
    rooms = {"situational": (0, 1_000, 1_000), "reserve": (200, 300, 400)}
    packet = compile_packet([*many(20), fact("answer", "reserve")], profile(rooms), 1)
    assert used(packet)["reserve"] == 0
    assert used(packet)["situational"] == 800
    assert dict(packet.drops)["band_ceiling"] == 1


@pytest.mark.parametrize(
    ("tokens", "level"), [((300, 90, 10), "outline"), ((300, 150, 10), "reference")]
)
def test_what_does_not_fit_in_full_is_shortened(tokens: tuple[int, int, int], level: str) -> None:
    large = fact("large", tokens=tokens[0], outline=tokens[1], reference=tokens[2])
    packet = compile_packet([large], profile({"situational": (0, 100, 100)}), 1)
    assert kept(packet, "situational") == [(large.fact_id, level)]


def test_pinned_facts_are_kept_in_full_beyond_target_and_ceiling() -> None:
    rooms = {"objectives": (0, 100, 200), "situational": (0, 500, 1_000)}
    said = fact("said", "objectives", tokens=400, outline=10, pinned=True, utility=0)
    packet = compile_packet([said, fact("other", "objectives"), *many(20)], profile(rooms), 1)
    assert kept(packet, "objectives") == [(said.fact_id, "full")]
    assert used(packet)["situational"] == 600
    assert dict(packet.drops) == {"band_ceiling": 1, "budget": 14}


def test_pinned_facts_over_the_budget_are_shortened_in_order_and_then_an_error_that_names_them():
    facts = [
        fact("old", "exploration", tokens=300, outline=100, reference=10, pinned=True),
        fact("new", "exploration", tokens=300, outline=100, reference=10, pinned=True, position=2),
        fact("rules", "identity", tokens=300, reference=20, pinned=True),
        fact("said", "objectives", tokens=300, reference=5, pinned=True, source_type="person"),
    ]
    rooms = {"objectives": (0, 0, 2_000), "exploration": (100, 100, 2_000)}
    levels = {
        total: [
            entry.level
            for _, entry in compile_packet(facts, profile(rooms, total=total), 1).rendered()
        ]
        for total in (1_200, 1_000, 800, 620, 340)
    }
    # The order of the prompt: identity, objectives, exploration.
    assert levels == {
        1_200: ["full", "full", "full", "full"],
        1_000: ["full", "full", "outline", "full"],
        800: ["full", "full", "outline", "outline"],
        620: ["full", "full", "reference", "reference"],
        340: ["reference", "full", "reference", "reference"],
    }
    with pytest.raises(PinnedOverBudget) as caught:
        compile_packet(facts, profile(rooms, total=339), 1)
    words = str(caught.value)
    assert words.index("made:said (300)") < words.index("made:rules (20)")
    assert "1 more than the budget" in words
    assert caught.value.code == "pinned_over_budget"


def test_what_is_superseded_is_out_even_when_pinned() -> None:
    old = fact("old", key="plan", pinned=True, superseded=True)
    new = fact("new", key="plan", pinned=True, ordinal=2)
    packet = compile_packet([old, new], profile(ONE), 2)
    assert kept(packet, "situational") == [(new.fact_id, "full")]
    assert packet.drops == (("superseded", 1),)


def test_the_same_place_seen_again_in_a_later_wave_is_a_duplicate() -> None:
    again = {"key": "src/a.py", "ref": "file:src/a.py"}
    first, later = fact("one", **again), fact("two", ordinal=2, **again)
    part = fact("three", ordinal=2, key="src/a.py", ref="file:src/a.py:1-9", position=2)
    packet = compile_packet([first, later, part], profile(ONE), 2)
    assert kept(packet, "situational") == [(later.fact_id, "full"), (part.fact_id, "full")]
    assert packet.drops == (("duplicate", 1),)


def test_a_source_may_not_crowd_out_the_others() -> None:
    rooms = {"situational": (0, 900, 900)}
    crowd = many(20, ref="log:all", utility=900_000)
    others = [fact(f"other-{i}", utility=1_000, position=100 + i) for i in range(20)]
    packet = compile_packet([*crowd, *others], profile(rooms), 1)
    ids = {name for name, _ in kept(packet, "situational")}
    assert sum(f.fact_id in ids for f in crowd) == 3
    assert dict(packet.drops)["source_cap"] == 17


def test_a_source_type_holds_three_quarters_while_others_wait() -> None:
    crowd = many(20, source_type="log", utility=900_000)
    others = [
        fact(f"other-{i}", utility=1_000, position=100 + i, source_type=f"kind-{i}")
        for i in range(20)
    ]
    packet = compile_packet([*crowd, *others], profile({"situational": (0, 800, 800)}), 1)
    ids = {name for name, _ in kept(packet, "situational")}
    assert sum(f.fact_id in ids for f in crowd) == 6


def test_a_disabled_family_and_a_worthless_fact_are_low_utility() -> None:
    facts = [fact("off", source_type="log"), fact("zero", utility=0), fact("fine")]
    packet = compile_packet(facts, profile(ONE, rules=[rule("log", enabled=False)]), 1)
    assert kept(packet, "situational") == [(facts[2].fact_id, "full")]
    assert packet.drops == (("low_utility", 2),)


def test_the_two_rankings_differ_as_the_profile_says() -> None:
    heavy = fact("heavy", tokens=400, utility=600_000)
    light = [fact(f"light-{i}", tokens=100, utility=500_000, position=2 + i) for i in range(4)]
    room = {"situational": (0, 400, 400)}
    by_score = compile_packet([heavy, *light], profile(room), 1)
    by_density = compile_packet([heavy, *light], profile(room, ranking="density"), 1)
    # The heavy one is larger than a source's third and waits; alone of its kind it would not.
    assert {name for name, _ in kept(by_density, "situational")} == {f.fact_id for f in light}
    alone = profile({"situational": (0, 1_200, 1_200)}, total=400)
    by_score = compile_packet([heavy, *light], alone, 1)
    assert kept(by_score, "situational") == [(heavy.fact_id, "full")]


def test_every_fact_is_explained_in_order_of_time() -> None:
    rooms = {"situational": (100, 200, 400), "objectives": (0, 100, 100)}
    facts = [
        fact("said", "objectives", pinned=True, position=0),
        *many(3),
        fact("long", tokens=1_000, outline=90, utility=590_000, position=50),
        fact("gone", superseded=True, position=51),
        fact("late", utility=1_000, position=52),
    ]
    told = explain_packet(facts, profile(rooms), 1)
    assert [(line.verdict, line.level, line.reason) for line in told] == [
        *[("kept", "full", "pinned"), ("kept", "full", "floor")],
        *[("kept", "full", "target"), ("kept", "full", "utility")],
        ("shortened", "outline", "utility"),
        ("dropped", "", "superseded"),
        ("dropped", "", "band_ceiling"),
    ]
    assert [line.tokens for line in told] == [100, 100, 100, 100, 90, 100, 100]
    assert told[4].source_ref == "made:long"
    one = explain_packet(facts, profile(rooms), 1, band="objectives")
    assert one == tuple(line for line in told if line.band == "objectives") == told[:1]


def test_a_crowd_of_thousands_does_not_hide_what_stands_behind_it() -> None:
    crowd = many(4_000, ref="log:all", source_type="log", tokens=10, utility=900_000)
    others = [
        fact(f"other-{i}", tokens=10, utility=1_000 - i, position=30_000 + i) for i in range(90)
    ]
    room = profile({"situational": (300, 900, 900), "exploration": (100, 100, 100)})
    facts = [*crowd, *others]
    packet = compile_packet(facts, room, 1)
    ids = [name for name, _ in kept(packet, "situational")]
    assert ids == [f.fact_id for f in (*crowd[:30], *others[:60])]
    assert used(packet)["situational"] == 900
    assert dict(packet.drops) == {"source_cap": 3_970, "band_ceiling": 30}
    assert compile_packet(facts[::-1], room, 1).digest == packet.digest


def test_equal_worth_goes_to_the_higher_utility_before_the_earlier_fact() -> None:
    """For each token the three are worth the same; there is room for the late one or the early two."""
    early = [
        fact(f"early-{n}", utility=100_000, tokens=100, position=n, source_type=f"a-{n}")
        for n in (1, 2)
    ]
    late = fact("late", utility=200_000, tokens=200, position=3, source_type="b")
    wide = profile({"situational": (0, 1_200, 1_200)}, total=200, ranking="density")
    packet = compile_packet([*early, late], wide, 1)
    assert kept(packet, "situational") == [(late.fact_id, "full")]

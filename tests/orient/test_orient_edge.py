"""Facts that are large beside their room: which of them share it, against every other choice."""

from __future__ import annotations

from itertools import product

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from orient_made import fact, kept, many, profile, used

from cockpit.orient.compile_packet import compile_packet, select_for_packet
from cockpit.store.context.facts import SessionFact

pytestmark = pytest.mark.slow

ENOUGH = 511 / 512


def test_the_best_fact_of_a_source_is_never_held_back_however_large() -> None:
    best = fact("best", tokens=700, utility=900_000, ref="log:all", source_type="log")
    other = fact("other", tokens=300, utility=1_000)
    rooms = profile({"situational": (0, 900, 900)})
    packet = compile_packet([best, other], rooms, 1)
    assert (best.fact_id, "full") in kept(packet, "situational")
    # Its share is used up: what else there is of its source waits.
    more = fact("more", tokens=200, utility=800_000, ref="log:all", source_type="log")
    small = fact("small", tokens=200, utility=2_000)
    packet = compile_packet([best, more, small], rooms, 1)
    assert kept(packet, "situational") == [
        (name, "full") for name in sorted((best.fact_id, small.fact_id))
    ]
    assert packet.drops == (("source_cap", 1),)


def test_a_fact_that_does_not_fit_its_sources_share_lets_a_smaller_one_pass() -> None:
    sizes = (200, 150, 90, 20)
    one = [
        fact(f"{size}", tokens=size, utility=900_000 + size, ref="log:all", source_type="log")
        for size in sizes
    ]
    others = many(9, utility=1_000, tokens=75)
    packet = compile_packet([*one, *others], profile({"situational": (0, 900, 900)}), 1)
    ids = {name for name, _ in kept(packet, "situational")}
    assert [f.fact_id in ids for f in one] == [True, False, True, False]


def test_a_hole_at_the_end_of_the_room_is_filled_by_what_fits_best() -> None:
    # In order of worth: 400 + 400, and then nothing fits but the last.
    facts = [
        fact("a", tokens=400, utility=900_000, source_type="a"),
        fact("b", tokens=400, utility=890_000, source_type="b"),
        fact("c", tokens=590, utility=880_000, source_type="c"),
        fact("d", tokens=100, utility=10_000, source_type="d"),
    ]
    packet = compile_packet(facts, profile({"situational": (0, 1_000, 1_000)}), 1)
    assert {name for name, _ in kept(packet, "situational")} == {
        facts[0].fact_id,
        facts[2].fact_id,
    }
    assert used(packet)["situational"] == 990


def test_a_room_that_whole_facts_fill_well_keeps_them_in_order_of_worth() -> None:
    facts = many(400, tokens=7)
    packet = compile_packet(facts, profile({"situational": (0, 1_000, 1_000)}), 1)
    ids = [name for name, _ in kept(packet, "situational")]
    assert ids == [one.fact_id for one in facts[: 1_000 // 7]]


@st.composite
def lumps(draw: st.DrawFn) -> list[SessionFact]:
    """Up to seven facts, some with an outline, each of a source type of its own."""
    return [
        fact(
            f"lump-{number}",
            tokens=draw(st.integers(1, 600)),
            source_type=f"kind-{number}",
            outline=draw(st.sampled_from((0, 0, 40))),
            utility=draw(st.integers(1, 1_000_000)),
        )
        for number in range(draw(st.integers(1, 7)))
    ]


@given(lumps(), st.integers(1, 1_500))
@pytest.mark.search
@settings(max_examples=examples(60), deadline=None)
def test_no_other_choice_of_large_facts_is_worth_more(facts: list[SessionFact], room: int) -> None:
    chosen = select_for_packet(facts, profile({"situational": (0, room, room)}, total=room), 1)
    best = 0
    sizes = [
        [0, *{size for size in one.level_tokens if 0 < size <= one.level_tokens[0]}]
        for one in facts
    ]
    for taken in product(*sizes):
        if sum(taken) <= room:
            best = max(
                best, sum(one.utility * size for one, size in zip(facts, taken, strict=True))
            )
    value = sum(
        one.utility * int(tokens)
        for name, tokens in zip(chosen.columns.fact_ids, chosen.tokens, strict=True)
        for one in facts
        if one.fact_id == name
    )
    assert value >= best * ENOUGH
    assert chosen.quality_ppm <= 1_000_000

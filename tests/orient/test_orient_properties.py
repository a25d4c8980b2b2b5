"""What holds for any facts and any sound profile (RFC-003 §13.1, §13.6, §19.2)."""

from __future__ import annotations

from collections import Counter

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from orient_made import profile, used

from cockpit.orient.columns import from_linked
from cockpit.orient.compile import compile_packet, packet_of, selection
from cockpit.orient.explain import explain
from cockpit.orient.select import PinnedOverBudget
from cockpit.store.attention import BANDS, Predicate, Profile, Rule
from cockpit.store.facts import Linked
from cockpit.store.packets import Packet, packet_from_body

TYPES = ("file", "log", "note")


@st.composite
def fact_lists(draw: st.DrawFn, *, pins: int = 20) -> list[Linked]:
    """Up to 40 facts, one in ``pins`` pinned (0: none)."""
    count = draw(st.integers(0, 40))
    return [
        Linked(
            f"f-{number:024x}",
            draw(st.sampled_from(TYPES)),
            f"ref:{draw(st.integers(0, 8))}",
            draw(st.sampled_from(BANDS)),
            draw(st.integers(1, 4)),
            draw(st.integers(1, 50)),
            bool(pins) and draw(st.integers(1, pins)) == pins,
            draw(st.integers(1, 10)) == 10,
            draw(st.integers(0, 1_000_000)),
            (draw(st.integers(0, 400)), draw(st.integers(0, 100)), draw(st.integers(0, 30))),
            draw(st.sampled_from(("", "", "k1", "k2", "k3"))),
        )
        for number in range(count)
    ]


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    rooms = {}
    for name in BANDS:
        floor = draw(st.integers(0, 300))
        target = floor + draw(st.integers(0, 500))
        rooms[name] = (floor, target, target + draw(st.integers(0, 800)))
    least = max(sum(floor for floor, _, _ in rooms.values()), 1)
    rules = [
        Rule(
            f"{name}-{number}",
            name,
            Predicate(min_utility=draw(st.sampled_from((0, 0, 300_000)))),
            draw(st.integers(0, 4_000)),
            draw(st.integers(0, 1_000)),
            draw(st.integers(0, 1_000)),
            draw(st.integers(0, 6)),
            draw(st.booleans()),
        )
        for name in TYPES
        for number in range(draw(st.integers(0, 2)))
    ]
    return profile(
        rooms,
        total=least + draw(st.integers(0, 4_000)),
        ranking=draw(st.sampled_from(("utility", "density"))),
        rules=rules,
    )


def compiled(facts: list[Linked], shape: Profile) -> Packet:
    try:
        return compile_packet(facts, shape, 4)
    except PinnedOverBudget:
        assume(False)
        raise


@given(fact_lists(), profiles())
@settings(max_examples=300, deadline=None)
def test_the_budget_the_floors_and_the_ceilings_hold(facts: list[Linked], shape: Profile) -> None:
    packet = compiled(facts, shape)
    pinned = Counter[str]()
    for fact in facts:
        if fact.pinned and not fact.superseded:
            pinned[fact.band] += fact.level_tokens[0]
    assert packet.token_used == sum(used(packet).values()) <= packet.token_budget
    reserved = sum(max(band.used, band.min_tokens) for band in packet.bands)
    assert reserved <= packet.token_budget
    for band in packet.bands:
        assert band.used == sum(entry.tokens for entry in band.entries)
        assert band.used <= max(band.max_tokens, pinned[band.name])
    assert used(packet)["reserve"] == pinned["reserve"]


@given(fact_lists(), profiles())
@settings(max_examples=300, deadline=None)
def test_no_room_is_left_that_a_dropped_fact_fits_into(facts: list[Linked], shape: Profile) -> None:
    packet = compiled(facts, shape)
    told = {line.fact_id: line for line in explain(facts, shape, 4)}
    spare = packet.token_budget - sum(max(band.used, band.min_tokens) for band in packet.bands)
    bands = {band.name: band for band in packet.bands}
    for fact in facts:
        line = told[fact.fact_id]
        if line.verdict != "dropped" or line.reason not in ("budget", "band_ceiling", "source_cap"):
            continue
        band = bands[fact.band]
        if fact.band == "reserve":
            continue
        full, *shorter = fact.level_tokens
        least = min([full, *(tokens for tokens in shorter if 0 < tokens < full)])
        # Also: a band whose floor is not used up turned away nothing that the floor had room for.
        own = max(band.min_tokens - band.used, 0) + spare
        assert least > min(own, band.max_tokens - band.used)
        assert (line.reason != "band_ceiling") or least > band.max_tokens - band.used


@given(fact_lists(), profiles())
@settings(max_examples=200, deadline=None)
def test_pinned_facts_are_always_there_in_full(facts: list[Linked], shape: Profile) -> None:
    packet = compiled(facts, shape)
    there = {entry.fact_id: entry for _, entry in packet.rendered()}
    for fact in facts:
        if fact.pinned and not fact.superseded:
            assert there[fact.fact_id].level == "full"
            assert there[fact.fact_id].pinned


@given(fact_lists(pins=2), profiles())
@settings(max_examples=200, deadline=None)
def test_pinned_over_budget_is_raised_exactly_when_they_do_not_fit(
    facts: list[Linked], shape: Profile
) -> None:
    need = {band.name: 0 for band in shape.bands}
    for fact in facts:
        if fact.pinned and not fact.superseded:
            need[fact.band] += fact.level_tokens[0]
    reserved = sum(max(need[band.name], band.min_tokens) for band in shape.bands)
    try:
        compile_packet(facts, shape, 4)
    except PinnedOverBudget:
        assert reserved > shape.total_token_budget
    else:
        assert reserved <= shape.total_token_budget


@given(fact_lists(), profiles())
@settings(max_examples=200, deadline=None)
def test_every_fact_is_accounted_for(facts: list[Linked], shape: Profile) -> None:
    packet = compiled(facts, shape)
    told = explain(facts, shape, 4)
    assert packet.facts + packet.dropped == len(facts) == len(told)
    assert Counter(line.reason for line in told if line.verdict == "dropped") == dict(packet.drops)
    for band in packet.bands:
        mine = [line for line in told if line.band == band.name]
        assert band.dropped == sum(line.verdict == "dropped" for line in mine)
        assert [(e.fact_id, e.level, e.tokens, e.ordinal) for e in band.entries] == [
            (line.fact_id, line.level, line.tokens, line.ordinal)
            for line in mine
            if line.verdict != "dropped"
        ]
        assert all(
            (line.verdict == "shortened") == (line.level in ("outline", "reference"))
            for line in mine
        )


@given(fact_lists(), profiles(), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_no_order_of_arrival_shows(facts: list[Linked], shape: Profile, random: object) -> None:
    packet = compiled(facts, shape)
    random.shuffle(facts)  # type: ignore[attr-defined]  # hypothesis types its random as object
    again = compile_packet(facts, shape, 4)
    assert again == packet
    assert again.digest == packet.digest


@given(fact_lists(), profiles())
@settings(max_examples=100, deadline=None)
def test_a_body_is_the_whole_packet(facts: list[Linked], shape: Profile) -> None:
    packet = compiled(facts, shape)
    assert packet_from_body(packet.body()) == packet


@given(fact_lists(pins=0), profiles())
@settings(max_examples=200, deadline=None)
def test_quality_is_a_share_of_the_bound(facts: list[Linked], shape: Profile) -> None:
    chosen = selection(facts, shape, 4)
    assert 0 <= chosen.quality_ppm <= 1_000_000
    packet = packet_of(chosen, shape, 4)
    if not packet.drops and all(entry.level == "full" for _, entry in packet.rendered()):
        assert chosen.quality_ppm == 1_000_000


@given(fact_lists(), profiles())
@settings(max_examples=100, deadline=None)
def test_columns_given_once_are_columns_for_ever(facts: list[Linked], shape: Profile) -> None:
    columns = from_linked(facts)
    first = compiled(facts, shape)
    assert compile_packet(columns, shape, 4) == first
    assert compile_packet(columns, shape, 4) == first

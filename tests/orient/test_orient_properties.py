"""What holds for any facts and any sound profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest
from dice import Dice
from examples import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from orient_made import fact as made
from orient_made import kept, profile, used

from cockpit.orient.compile_packet import (
    ALGORITHM,
    ALGORITHMS,
    build_packet,
    compile_packet,
    select_for_packet,
)
from cockpit.orient.explain_packet import explain_packet
from cockpit.orient.fact_columns import columns_from_facts
from cockpit.orient.select_facts import PinnedOverBudget, select_facts
from cockpit.store.context.facts import SessionFact
from cockpit.store.context.packets import Overheads, Packet, packet_from_body
from cockpit.store.context.profile_model import BANDS, Predicate, Profile, Rule, scale

pytestmark = [pytest.mark.slow, pytest.mark.search]

TYPES = ("file", "log", "note")
Check = Callable[[list[SessionFact], Profile, str], None]
WAYS = st.sampled_from(tuple(ALGORITHMS))
BATCH = 5
"""Cases in one example: an example of its own for each costs more than what it checks."""


@st.composite
def fact_lists(draw: st.DrawFn, *, pins: int = 20) -> list[SessionFact]:
    """Up to 24 facts, one in ``pins`` pinned (0: none), each of three bytes, so that it shrinks alone."""
    count = draw(st.integers(0, 24))
    seeds = draw(st.binary(min_size=3 * count, max_size=3 * count))
    return [_fact(number, Dice(seeds[3 * number :][:3]), pins) for number in range(count)]


def _fact(number: int, thrown: Dice, pins: int) -> SessionFact:
    return SessionFact(
        f"f-{number:024x}", thrown.one_of(*TYPES), f"ref:{thrown.number(0, 8)}",
        thrown.one_of(*BANDS), thrown.number(1, 4), thrown.number(1, 50),
        bool(pins) and thrown.number(1, pins) == pins, thrown.number(1, 10) == 10,
        thrown.number(0, 1_000_000),
        (thrown.number(0, 400), thrown.number(0, 100), thrown.number(0, 30)),
        thrown.one_of("", "", "k1", "k2", "k3"),
        costs=thrown.one_of(None, _costs(thrown)), pinned_short=thrown.one_of(False, True),
    )  # fmt: skip


def _costs(thrown: Dice) -> tuple[int, int, int]:
    return (thrown.number(1, 440), thrown.number(0, 130), thrown.number(1, 60))


def levels(fact: SessionFact, way: str) -> tuple[int, ...]:
    """The tokens of the levels that a fact has, as the algorithm counts them, the fullest first."""
    counted = fact.costs if ALGORITHMS[way].renders and fact.costs else fact.level_tokens
    full, outline, reference = counted
    shorter = [outline] if 0 < outline < full else []
    return (full, *shorter, *([reference] if 0 < reference < min([full, *shorter]) else []))


def pinned_tokens(fact: SessionFact, way: str) -> int:
    """What a pinned fact takes at least: all of it, or the outline that its pin is satisfied by."""
    outline = (fact.costs or fact.level_tokens)[1]
    full, *shorter = levels(fact, way)
    short = ALGORITHMS[way].renders and fact.pinned_short and outline in shorter
    return outline if short else full


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    thrown = Dice(draw(st.binary(min_size=8, max_size=8)))
    rooms = {}
    for name in BANDS:
        floor = thrown.number(0, 300)
        target = floor + thrown.number(0, 500)
        rooms[name] = (floor, target, target + thrown.number(0, 800))
    least = max(sum(floor for floor, _, _ in rooms.values()), 1)
    rules = [
        Rule(
            f"{name}-{number}",
            name,
            Predicate(min_utility=thrown.one_of(0, 0, 300_000)),
            thrown.number(0, 4_000),
            thrown.number(0, 1_000),
            thrown.number(0, 1_000),
            thrown.number(0, 6),
            thrown.one_of(False, True, True),
        )
        for name in TYPES
        for number in range(thrown.number(0, 2))
    ]
    return profile(
        rooms,
        total=least + thrown.number(0, 4_000),
        ranking=thrown.one_of("utility", "density"),
        rules=rules,
    )


def for_cases(
    number: int, *, pins: int = 20, ways: st.SearchStrategy[str] = WAYS
) -> Callable[[Check], Callable[[], None]]:
    """Run a check on at least ``number`` cases whose pinned facts have room."""

    def decorate(check: Check) -> Callable[[], None]:
        case = st.tuples(fact_lists(pins=pins), profiles(), ways)

        @settings(max_examples=examples(number // (BATCH - 1)), deadline=None)
        @given(st.tuples(*[case] * BATCH))
        def check_batch(cases: tuple[tuple[list[SessionFact], Profile, str], ...]) -> None:
            checked = 0
            for facts, shape, way in cases:
                with suppress(PinnedOverBudget):
                    check(facts, shape, way)
                    checked += 1
            assume(checked >= BATCH - 1)

        check_batch.__name__ = check.__name__
        check_batch.__qualname__ = check.__qualname__
        return check_batch

    return decorate


def compiled(facts: list[SessionFact], shape: Profile, way: str) -> Packet:
    return compile_packet(facts, shape, 4, algorithm=way)


@for_cases(64)
def test_the_budget_the_floors_and_the_ceilings_hold(
    facts: list[SessionFact], shape: Profile, way: str
) -> None:
    packet = compiled(facts, shape, way)
    pinned = Counter[str]()
    for fact in facts:
        if fact.pinned and not fact.superseded:
            pinned[fact.band] += pinned_tokens(fact, way)
    assert packet.token_used == sum(used(packet).values()) <= packet.token_budget
    if not ALGORITHMS[way].renders:
        reserved = sum(max(band.used, band.min_tokens) for band in packet.bands)
        assert reserved <= packet.token_budget
    for band in packet.bands:
        assert band.used == sum(entry.tokens for entry in band.entries)
        assert band.used <= max(band.max_tokens, pinned[band.name])
    if not ALGORITHMS[way].renders:
        assert used(packet)["reserve"] == pinned["reserve"]


@for_cases(64, ways=st.just(ALGORITHM))
def test_floors_hold_for_facts_that_exist(
    facts: list[SessionFact], shape: Profile, way: str
) -> None:
    packet = compiled(facts, shape, way)
    verdicts = explain_packet(facts, shape, 4, algorithm=way)
    answer = packet.bands[BANDS.index("reserve")]
    left = packet.token_budget - packet.token_used - max(answer.min_tokens - answer.used, 0)
    open_room = {"low_utility", "duplicate", "superseded"}
    for code, band in enumerate(packet.bands):
        mine = [line for line in verdicts if line.band == band.name]
        waiting = [line for line in mine if line.verdict == "dropped"]
        waiting = [line for line in waiting if line.reason not in open_room]
        if band.name == "reserve" or not waiting or band.used >= band.min_tokens:
            continue
        # Below its floor while facts wait: none of them fits into what is left of it, or what is
        # pinned left less room than all floors need.
        pinned = sum(line.tokens for line in verdicts if line.reason == "pinned")
        floors = sum(other.min_tokens for other in packet.bands)
        by_id = {fact.fact_id: fact for fact in facts}
        least = min(levels(by_id[line.fact_id], way)[-1] for line in waiting)
        assert least > min(left, band.max_tokens - band.used)
        crowded = pinned + floors > packet.token_budget
        assert crowded or least > band.min_tokens - band.used, (code, band)


@for_cases(64)
def test_no_room_is_left_that_a_dropped_fact_fits_into(
    facts: list[SessionFact], shape: Profile, way: str
) -> None:
    packet = compiled(facts, shape, way)
    told = {line.fact_id: line for line in explain_packet(facts, shape, 4, algorithm=way)}
    renders = ALGORITHMS[way].renders
    reserved = ("reserve",) if renders else BANDS
    spare = packet.token_budget - sum(
        max(band.used, band.min_tokens) if band.name in reserved else band.used
        for band in packet.bands
    )
    bands = {band.name: band for band in packet.bands}
    for fact in facts:
        line = told[fact.fact_id]
        if line.verdict != "dropped" or line.reason not in ("budget", "band_ceiling", "source_cap"):
            continue
        band = bands[fact.band]
        if fact.band == "reserve":
            continue
        least = levels(fact, way)[-1]
        # Also: a band whose floor is not used up turned away nothing that the floor had room for.
        own = spare if renders else max(band.min_tokens - band.used, 0) + spare
        assert least > min(own, band.max_tokens - band.used)
        assert (line.reason != "band_ceiling") or least > band.max_tokens - band.used


@for_cases(62)
def test_pinned_facts_are_always_there_with_their_meaning(
    facts: list[SessionFact], shape: Profile, way: str
) -> None:
    packet = compiled(facts, shape, way)
    there = {entry.fact_id: entry for _, entry in packet.rendered()}
    for fact in facts:
        if fact.pinned and not fact.superseded:
            entry = there[fact.fact_id]
            assert entry.pinned
            short = ALGORITHMS[way].renders and fact.pinned_short
            assert entry.level == "full" or (short and entry.level == "outline")
            assert entry.tokens >= pinned_tokens(fact, way)


@for_cases(62, pins=2)
def test_pinned_over_budget_is_raised_exactly_when_they_do_not_fit(
    facts: list[SessionFact], shape: Profile, way: str
) -> None:
    need = {band.name: 0 for band in shape.bands}
    for fact in facts:
        if fact.pinned and not fact.superseded:
            need[fact.band] += pinned_tokens(fact, way)
    # Pins alone may exceed the budget. The older algorithms also kept every floor beside them.
    floors = 0 if ALGORITHMS[way].renders else 1
    reserved = sum(max(need[band.name], band.min_tokens * floors) for band in shape.bands)
    try:
        compile_packet(facts, shape, 4, algorithm=way)
    except PinnedOverBudget:
        assert reserved > shape.total_token_budget
    else:
        assert reserved <= shape.total_token_budget


@for_cases(62)
def test_every_fact_is_accounted_for(facts: list[SessionFact], shape: Profile, way: str) -> None:
    packet = compiled(facts, shape, way)
    told = explain_packet(facts, shape, 4, algorithm=way)
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


@for_cases(64)
def test_no_order_of_arrival_shows(facts: list[SessionFact], shape: Profile, way: str) -> None:
    packet = compiled(facts, shape, way)
    assert packet_from_body(packet.body()) == packet
    Random(packet.digest).shuffle(facts)
    columns = columns_from_facts(facts, rendered=ALGORITHMS[way].renders)
    for again in (compiled(facts, shape, way), compile_packet(columns, shape, 4, algorithm=way)):
        assert again == packet
        assert again.digest == packet.digest


@for_cases(62, pins=0)
def test_quality_is_a_share_of_the_bound(
    facts: list[SessionFact], shape: Profile, way: str
) -> None:
    chosen = select_for_packet(facts, shape, 4, algorithm=way)
    assert 0 <= chosen.quality_ppm <= 1_000_000
    packet = build_packet(chosen, shape, 4)
    assert packet.algorithm == way
    if not packet.drops and all(entry.level == "full" for _, entry in packet.rendered()):
        assert chosen.quality_ppm == 1_000_000


@given(st.binary(max_size=40), st.integers(0, 40), WAYS)
@settings(max_examples=examples(50), deadline=None)
def test_ties_go_to_utility_then_time_then_id(seen: bytes, holds: int, way: str) -> None:
    ranks = [(1 + each % 3, 1 + each // 3 % 3, 1 + each // 9 % 9) for each in seen]
    facts = [
        made(
            f"fact-{number}",
            utility=utility * 100_000,
            ordinal=ordinal,
            position=position,
            source_type=f"kind-{number}",
        )
        for number, (utility, ordinal, position) in enumerate(ranks)
    ]
    Random(seen).shuffle(facts)
    room = profile({"situational": (0, holds * 100, holds * 100 + 99)}, total=holds * 100 + 99)
    packet = compile_packet(facts, room, 4, algorithm=way)
    facts.sort(key=lambda one: (-one.utility, one.ordinal, one.position, one.fact_id))
    assert {name for name, _ in kept(packet, "situational")} == {
        one.fact_id for one in facts[:holds]
    }


@for_cases(50)
def test_a_selection_that_explains_nothing_is_the_same_packet(facts, room, way):
    columns = columns_from_facts(facts)
    for scaled in (room, scale(room, room.total_token_budget * 20)):
        with suppress(PinnedOverBudget):
            whole = select_facts(columns, scaled, 4, ALGORITHMS[way], Overheads())
            brief = select_facts(columns, scaled, 4, ALGORITHMS[way], Overheads(), explains=False)
            assert build_packet(brief, scaled, 4) == build_packet(whole, scaled, 4)
            assert brief.level.tolist() == whole.level.tolist()
            assert brief.dropped_for.tolist() == whole.dropped_for.tolist()

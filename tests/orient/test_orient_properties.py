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

from cockpit.orient.compile_packet import compile_packet
from cockpit.orient.explain_packet import explain_packet
from cockpit.orient.fact_columns import columns_from_facts
from cockpit.orient.select_facts import PinnedOverBudget
from cockpit.store.context.facts import SessionFact
from cockpit.store.context.packets import packet_from_body
from cockpit.store.context.profile_model import BANDS, Predicate, Profile, Rule

pytestmark = [pytest.mark.slow, pytest.mark.search]

TYPES = ("file", "log", "note")
Check = Callable[[list[SessionFact], Profile], None]
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


def levels(fact: SessionFact) -> tuple[int, ...]:
    """The tokens of the levels that a fact has, as rendered where that was counted, the fullest first."""
    full, outline, reference = fact.costs or fact.level_tokens
    shorter = [outline] if 0 < outline < full else []
    return (full, *shorter, *([reference] if 0 < reference < min([full, *shorter]) else []))


def pinned_tokens(fact: SessionFact) -> int:
    """What a pinned fact takes at least: all of it, or the outline that its pin is satisfied by."""
    outline = (fact.costs or fact.level_tokens)[1]
    full, *shorter = levels(fact)
    return outline if fact.pinned_short and outline in shorter else full


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


def for_cases(number: int, *, pins: int = 20) -> Callable[[Check], Callable[[], None]]:
    """Run a check on at least ``number`` cases whose pinned facts have room."""

    def decorate(check: Check) -> Callable[[], None]:
        case = st.tuples(fact_lists(pins=pins), profiles())

        @settings(max_examples=examples(number // (BATCH - 1)), deadline=None)
        @given(st.tuples(*[case] * BATCH))
        def check_batch(cases: tuple[tuple[list[SessionFact], Profile], ...]) -> None:
            checked = 0
            for facts, shape in cases:
                with suppress(PinnedOverBudget):
                    check(facts, shape)
                    checked += 1
            assume(checked >= BATCH - 1)

        check_batch.__name__ = check.__name__
        check_batch.__qualname__ = check.__qualname__
        return check_batch

    return decorate


@for_cases(64)
def test_the_budget_the_floors_and_the_ceilings_hold(facts, shape):
    packet = compile_packet(facts, shape, 4)
    pinned = Counter[str]()
    for fact in facts:
        if fact.pinned and not fact.superseded:
            pinned[fact.band] += pinned_tokens(fact)
    assert packet.token_used == sum(used(packet).values()) <= packet.token_budget
    for band in packet.bands:
        assert band.used == sum(entry.tokens for entry in band.entries)
        assert band.used <= max(band.max_tokens, pinned[band.name])


@for_cases(64)
def test_floors_hold_for_facts_that_exist(facts: list[SessionFact], shape: Profile) -> None:
    packet = compile_packet(facts, shape, 4)
    verdicts = explain_packet(facts, shape, 4)
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
        least = min(levels(by_id[line.fact_id])[-1] for line in waiting)
        assert least > min(left, band.max_tokens - band.used)
        crowded = pinned + floors > packet.token_budget
        assert crowded or least > band.min_tokens - band.used, (code, band)


@for_cases(64)
def test_nothing_is_out_or_shortened_while_there_is_room(facts, shape):
    packet = compile_packet(facts, shape, 4)
    told = {line.fact_id: line for line in explain_packet(facts, shape, 4)}
    spare = packet.token_budget - sum(
        max(band.used, band.min_tokens) if band.name == "reserve" else band.used
        for band in packet.bands
    )
    bands = {band.name: band for band in packet.bands}
    for fact in facts:
        line, band = told[fact.fact_id], bands[fact.band]
        room = min(spare, band.max_tokens - band.used)
        if line.verdict == "shortened":
            assert levels(fact)[0] - line.tokens > room
        is_open = line.reason in ("budget", "band_ceiling", "source_cap")
        if line.verdict == "dropped" and is_open and fact.band != "reserve":
            assert levels(fact)[-1] > room
            assert (line.reason != "band_ceiling") or levels(fact)[-1] > band.max_tokens - band.used


@for_cases(62, pins=2)
def test_pinned_facts_keep_their_level_until_the_budget_is_too_small_for_it(facts, shape):
    pins = [fact for fact in facts if fact.pinned and not fact.superseded]
    fits = sum(pinned_tokens(fact) for fact in pins) <= shape.total_token_budget
    least = sum(min(levels(fact)[-1], pinned_tokens(fact)) for fact in pins)
    try:
        packet = compile_packet(facts, shape, 4)
    except PinnedOverBudget:
        assert least > shape.total_token_budget
        return
    assert least <= shape.total_token_budget
    there = {entry.fact_id: entry for _, entry in packet.rendered()}
    for fact in pins:
        assert there[fact.fact_id].pinned
        assert not fits or there[fact.fact_id].tokens >= pinned_tokens(fact)


@for_cases(62)
def test_every_fact_is_accounted_for(facts: list[SessionFact], shape: Profile) -> None:
    packet = compile_packet(facts, shape, 4)
    told = explain_packet(facts, shape, 4)
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
def test_no_order_of_arrival_shows(facts: list[SessionFact], shape: Profile) -> None:
    packet = compile_packet(facts, shape, 4)
    assert packet_from_body(packet.body()) == packet
    Random(packet.digest).shuffle(facts)
    columns = columns_from_facts(facts)
    for again in (compile_packet(facts, shape, 4), compile_packet(columns, shape, 4)):
        assert again == packet
        assert again.digest == packet.digest


@given(st.binary(max_size=40), st.integers(0, 40))
@settings(max_examples=examples(30), deadline=None)
def test_ties_go_to_utility_then_time_then_id(seen: bytes, holds: int) -> None:
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
    packet = compile_packet(facts, room, 1)  # nothing has an age
    facts.sort(key=lambda one: (-one.utility, one.ordinal, one.position, one.fact_id))
    assert {name for name, _ in kept(packet, "situational")} == {
        one.fact_id for one in facts[:holds]
    }

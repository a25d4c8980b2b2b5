"""Epochs: what a wave appends, and why another one begins."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from orient_made import fact, many, profile

from cockpit.orient.epoch_inputs import Standing
from cockpit.orient.epochs import compile_wave
from cockpit.orient.fact_columns import columns_from_facts
from cockpit.store.context.facts import SessionFact
from cockpit.store.context.packet_epoch import CachePrices, Change
from cockpit.store.context.packets import Packet
from cockpit.store.context.profile_model import Profile

WIDE = profile({"situational": (0, 5_000, 10_000), "identity": (0, 500, 1_000)}, total=10_000)


def compiled(
    facts: list[SessionFact],
    ordinal: int,
    before: Packet | None = None,
    *,
    shape: Profile = WIDE,
    head: str = "tools",
    cold: bool = False,
    changes: dict[str, tuple[str, int]] | None = None,
) -> Packet:
    """The packet of a wave; ``changes`` gives (base, tokens) by the id of the fact that changed."""
    known = changes or {}

    def count(pairs):
        return [Change(new, base, known[new][1]) for new, base in pairs if new in known]

    return compile_wave(
        columns_from_facts(facts), shape, ordinal, Standing(before, head, cold, count)
    )


def reason(packet: Packet) -> str:
    assert packet.epoch is not None
    return packet.epoch.reason


def new_facts(count: int) -> list[SessionFact]:
    """Facts of wave 2 that are worth more than all others."""
    return [
        fact(f"new-{i}", ordinal=2, position=i, utility=950_000 - 1_000 * i) for i in range(count)
    ]


def entries(packet: Packet) -> list[tuple[str, str, int]]:
    """(fact id, level, wave that appended it) in the order of the prompt."""
    return [(entry.fact_id, entry.level, entry.added) for _, entry in packet.rendered()]


def test_a_wave_appends_what_is_new() -> None:
    old, new = fact("old"), fact("new", ordinal=2)
    first = compiled([old], 1)
    second = compiled([old, new], 2, first)
    assert reason(first) == "first"
    assert reason(second) == ""
    assert second.epoch is not None
    assert second.epoch.first == 1
    assert second.epoch.previous == first.digest
    assert entries(second) == [(old.fact_id, "full", 0), (new.fact_id, "full", 2)]


def test_what_a_fresh_packet_would_drop_stays() -> None:
    old = fact("old", key="k")
    first = compiled([old], 1)
    facts = [replace(old, superseded=True), fact("new", key="other", ordinal=2)]
    second = compiled(facts, 2, first)
    assert [level for _, level, _ in entries(second)] == ["full", "full", "gone"]
    assert list(second.in_force()) == [fact("new").fact_id]
    third = compiled(facts, 3, second)
    assert entries(third) == entries(second), "what is gone is said once"


def test_a_changed_fact_comes_as_its_difference_where_that_is_shorter() -> None:
    old = fact("old", ref="file:a.py", key="a", tokens=500)
    new = fact("new", ref="file:a.py", key="a", tokens=500, ordinal=2)
    first = compiled([old], 1)
    gone = replace(old, superseded=True)
    short = compiled([gone, new], 2, first, changes={new.fact_id: (old.fact_id, 40)})
    long = compiled([gone, new], 2, first, changes={new.fact_id: (old.fact_id, 600)})
    assert entries(short)[1:] == [(new.fact_id, "diff", 2)]
    assert entries(long)[1:] == [(new.fact_id, "full", 2)]
    for packet in (short, long):
        assert packet.bands[3].entries[1].base == old.fact_id
        assert list(packet.in_force()) == [new.fact_id]
    assert short.token_used == 540


def test_a_fact_that_comes_back_is_said_again() -> None:
    """What stands above was replaced: it does not hold by itself again."""
    a = fact("a", ref="file:a.py", key="a", tokens=500)
    b = fact("b", ref="file:a.py", key="a", tokens=500, ordinal=2)
    first = compiled([a], 1)
    gone = replace(a, superseded=True)
    second = compiled([gone, b], 2, first, changes={b.fact_id: (a.fact_id, 40)})
    again = replace(a, ordinal=3, superseded=False)
    third = compiled(
        [gone, replace(b, superseded=True), again], 3, second,
        changes={a.fact_id: (b.fact_id, 40)},
    )  # fmt: skip
    assert entries(third)[-1] == (a.fact_id, "diff", 3)
    assert list(third.in_force()) == [a.fact_id]


def test_a_fact_that_was_shortened_and_is_pinned_now_comes_in_full() -> None:
    short = profile({"situational": (0, 300, 300)}, total=1_000)
    large = fact("large", tokens=400, outline=100)
    first = compiled([large], 1, shape=short)
    assert entries(first) == [(large.fact_id, "outline", 0)]
    second = compiled([replace(large, pinned=True)], 2, first, shape=short)
    assert entries(second)[-1] == (large.fact_id, "full", 2)


def test_no_room_to_append_begins_an_epoch_with_room() -> None:
    facts = many(90)
    first = compiled(facts, 1)
    assert first.token_used == 9_000
    second = compiled([*facts, *new_facts(30)], 2, first)
    assert reason(second) == "budget"
    assert second.token_used <= 5_100


def test_what_is_pinned_may_take_the_room_to_append() -> None:
    facts = [replace(each, pinned=True) for each in many(70)]
    first = compiled(facts, 1)
    second = compiled([*facts, *new_facts(40)], 2, first, head="others")
    assert reason(second) == "head"
    assert second.token_used == 10_000


def test_another_profile_begins_an_epoch() -> None:
    first = compiled([fact("old")], 1)
    assert (
        reason(compiled([fact("old")], 2, first, shape=replace(WIDE, ranking="density")))
        == "profile"
    )


@pytest.mark.parametrize("kind", ["tools", "identity", "task"])
def test_another_head_begins_an_epoch(kind: str) -> None:
    rule, task = fact("rule", "identity"), fact("task", source_type="task")
    first = compiled([rule, task], 1)
    match kind:
        case "tools":
            second = compiled([rule, task], 2, first, head="others")
        case "identity":
            second = compiled([rule, task, fact("more", "identity", ordinal=2)], 2, first)
        case _:
            second = compiled([rule, task, fact("next", source_type="task", ordinal=2)], 2, first)
    assert reason(second) == "head"


def test_a_removed_rule_begins_an_epoch() -> None:
    rule = fact("rule", "identity", key="AGENTS.md")
    first = compiled([rule], 1)
    assert reason(compiled([replace(rule, superseded=True)], 2, first)) == "head"


def test_a_cold_cache_begins_an_epoch_where_something_is_stale() -> None:
    old, gone = fact("old"), fact("gone", key="k", ref="made:old")
    first = compiled([old, gone], 1)
    assert reason(compiled([old, gone], 2, first, cold=True)) == ""
    assert reason(compiled([old, replace(gone, superseded=True)], 2, first, cold=True)) == "cold"


def test_an_epoch_ends_when_its_rent_has_paid_for_a_fresh_packet() -> None:
    """Stale tokens are carried until that has cost as much as sending the fresh packet."""
    live = [fact(f"live-{i}", tokens=400) for i in range(5)]
    stale = [fact(f"stale-{i}", tokens=400, key=f"k{i}") for i in range(5)]
    packet = compiled([*live, *stale], 1)
    gone = [replace(each, superseded=True) for each in stale]
    reasons, rent = [], 0
    for ordinal in range(2, 30):
        packet = compiled([*live, *gone], ordinal, packet)
        reasons.append(reason(packet))
        assert packet.epoch is not None
        if reasons[-1]:
            break
        assert packet.epoch.fresh == 2_000
        rent += 100 * packet.epoch.stale
        assert packet.epoch.rent == rent
        assert rent < 1_250 * 2_000
    assert reasons[-1] == "stale"
    assert rent + 100 * packet.epoch.stale >= 1_250 * 2_000
    assert packet.token_used == 2_000
    assert packet.epoch.rent == 0


def test_the_prices_of_the_profile_decide() -> None:
    live, stale = fact("live", tokens=400), fact("stale", tokens=400, key="k")
    dear = replace(WIDE, cache=CachePrices(read=1_000, write=1_000))
    first = compiled([live, stale], 1, shape=dear)
    second = compiled([live, replace(stale, superseded=True)], 2, first, shape=dear)
    assert reason(second) == "stale"
    assert dear.digest != WIDE.digest

"""Epochs: what a wave appends, and why another one begins."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from orient_made import fact, many, profile

from cockpit.orient.epochs import AIM_PERCENT, SHARES, Standing, choose_share, compile_wave
from cockpit.orient.fact_columns import columns_from_facts
from cockpit.store.context.facts import SessionFact
from cockpit.store.context.packet_epoch import CachePrices, Change, Epoch
from cockpit.store.context.packets import Packet, packet_from_body
from cockpit.store.context.profile_model import Profile, load_shipped

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

    def count(pairs, waves, shown):
        differences = [Change(new, base, known[new][1]) for new, base in pairs if new in known]
        new = [name for names in waves for name in names if name in known]
        bases = {*shown, *(name for names in waves for name in names)}
        return differences + [
            Change(name, known[name][0], known[name][1], points=True)
            for name in new
            if known[name][0] in bases
        ]

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


def test_what_repeats_text_above_points_to_it_and_is_whole_again_without_it() -> None:
    old = fact("old", tokens=500)
    new = fact("new", tokens=500, ordinal=2)
    points = {new.fact_id: (old.fact_id, 400)}
    first = compiled([old], 1)
    second = compiled([old, new], 2, first, changes=points)
    assert entries(second)[1:] == [(new.fact_id, "pointed", 2)]
    assert (second.token_used, set(second.in_force())) == (600, {old.fact_id, new.fact_id})
    # An epoch that begins points too, where what stands above is kept.
    third = compiled([old, new], 3, second, head="others", changes=points)
    assert entries(third) == [(old.fact_id, "full", 0), (new.fact_id, "pointed", 0)]
    assert packet_from_body(third.body()) == third
    gone = [replace(old, superseded=True), new]
    assert entries(compiled(gone, 4, third, head="more", changes=points)) == [
        (new.fact_id, "full", 0)
    ]


def test_an_epoch_that_begins_for_room_leaves_a_stated_share_of_it_free() -> None:
    facts = many(95)
    first = compiled(facts, 1)
    assert first.token_used == 9_500
    second = compiled([*facts, *new_facts(10)], 2, first)
    assert reason(second) == "budget"
    assert second.epoch is not None
    # One more epoch after one full packet saves nothing that could pay for it: the most is left free.
    assert (second.epoch.share, second.epoch.headroom) == (SHARES[-1], 6_000)
    # All that was seen is of the last three waves, and gives nothing away.
    assert second.token_used == 10_000
    later = compiled([*facts, *new_facts(10), *seen(5, 10)], 5, second)
    # The floor of a band is 0 here; what is of the last three waves stays, of the rest as much as is open.
    assert reason(later) == "budget"
    assert later.token_used == 4_000
    assert {one.fact_id for one in seen(5, 10)} <= set(later.in_force())
    wide = compiled([*facts, *new_facts(10), *seen(5, 10)], 5, second, head="others")
    assert wide.token_used == 9_000, "for another reason a tenth is left free"


def seen(ordinal: int, count: int) -> list[SessionFact]:
    """Facts of a wave that are worth less than all others."""
    return [
        fact(f"seen-{ordinal}-{i}", ordinal=ordinal, position=i, utility=1_000)
        for i in range(count)
    ]


def test_the_share_is_the_smallest_at_a_fair_price() -> None:
    prices = CachePrices()
    far = Epoch(9, "budget", 0, "", "", False, paid=1, transcript_paid=10**9)
    assert choose_share(prices, far, 1_000, 10_000, 500) == SHARES[0]
    shares = [
        choose_share(
            prices,
            replace(far, paid=paid, transcript_paid=10**8, transcript_before=60_000),
            *(1_000, 10_000, 500),
        )
        for paid in range(AIM_PERCENT * 10**6, AIM_PERCENT * 10**6 + 10**8, 10**6)
    ]
    assert shares == sorted(shares)
    assert shares[-1] == SHARES[-1]


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


def test_a_cold_cache_begins_an_epoch_where_a_fresh_packet_is_smaller() -> None:
    old, gone = fact("old"), fact("gone", key="k", ref="made:old")
    first = compiled([old, gone], 1)
    assert reason(compiled([old, gone], 2, first, cold=True)) == ""
    assert reason(compiled([old, replace(gone, superseded=True)], 2, first, cold=True)) == "cold"


def test_what_is_old_ends_no_epoch_while_there_is_room() -> None:
    facts = many(20)
    packet = compiled(facts, 1)
    for ordinal in range(2, 40):
        facts = [replace(each, superseded=each.position < ordinal // 2) for each in facts]
        packet = compiled(facts, ordinal, packet)
        assert reason(packet) == ""
    assert packet.epoch is not None
    assert packet.epoch.transcript == 2_000
    assert packet.epoch.paid > 0


def reads(ordinal: int, count: int, tokens: int) -> list[SessionFact]:
    """Files that were read in a wave."""
    return [
        fact(f"read-{ordinal}-{i}", tokens=tokens, outline=400, reference=40, ordinal=ordinal,
             position=i, source_type="file")
        for i in range(count)
    ]  # fmt: skip


def test_one_large_approved_read_stays_when_a_command_prints() -> None:
    shipped = load_shipped()
    files = reads(2, 18, 7_200)
    task = fact("task", "objectives", source_type="task", pinned=True)
    first = compiled([task], 1, shape=shipped)
    second = compiled([task, *files], 2, first, shape=shipped)
    whole = [entry for _, entry in second.rendered() if entry.level == "full"]
    assert len(whole) == 1 + 110_000 // 7_200
    printed = fact("printed", tokens=2_300, ordinal=3, source_type="exchange")
    third = compiled([task, *files, printed], 3, second, shape=shipped)
    assert third.bands[3].used > 110_000 - 7_200
    assert printed.fact_id in third.in_force()


def test_reads_that_fill_the_band_take_no_more_than_a_share_from_those_before() -> None:
    shipped = load_shipped()
    facts: list[SessionFact] = []
    packet = None
    for ordinal in range(1, 14):
        facts += reads(ordinal, 1, 10_000)
        packet = compiled(facts, ordinal, packet, shape=shipped)
        whole = [entry for _, entry in packet.rendered() if entry.level == "full"]
        assert len(whole) == ordinal or packet.bands[3].used >= 45_000
        assert {each.fact_id for each in facts[-3:]} <= {entry.fact_id for entry in whole}
        assert len(whole) == ordinal or ordinal > 11

"""A packet that is compiled of lists is the one that is compiled of arrays, byte for byte."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.core.named_files import FileNames
from cockpit.orient import append_small_packet, epochs
from cockpit.orient.epoch_inputs import Standing
from cockpit.orient.fact_columns import columns_from_facts
from cockpit.orient.select_facts import PinnedOverBudget
from cockpit.orient.small_packet import FewFacts
from cockpit.orient.spent_facts import find_spent
from cockpit.store.context.facts import UTILITY_MAX, SessionFact
from cockpit.store.context.packet_epoch import CachePrices, Change, SpentFacts
from cockpit.store.context.packets import Overheads, Packet, Rendering
from cockpit.store.context.profile_model import BANDS, Predicate, Profile, Rule, load_shipped, scale

pytestmark = [pytest.mark.slow, pytest.mark.search]

TYPES = ("file", "exchange", "person", "docs", "wip", "search", "task", "identity", "skill")


def row_of(fact: SessionFact) -> tuple[object, ...]:
    """Return the row of a fact, as the store reads it."""
    assert fact.costs is not None
    return (
        *(fact.fact_id, fact.source_type, fact.source_ref, fact.band, fact.ordinal, fact.position),
        *(int(fact.pinned), int(fact.superseded), fact.utility, *fact.level_tokens),
        *(fact.dedupe_key, fact.cluster, *fact.costs, int(fact.pinned_short)),
    )


class Dice(random.Random):
    """A session's facts, profile and history, at random."""

    def facts(self, ordinal: int, linked: list[SessionFact]) -> None:
        for place in range(self.randint(0, 4)):
            full = self.randint(0, 400)
            key = self.choice(("", "", f"k{self.randint(1, 5)}"))
            band = self.choice(BANDS) if self.random() < 0.15 else "situational"
            fact = SessionFact(
                f"f{self.randint(1, 400)}", self.choice(TYPES), f"r{self.randint(1, 6)}", band,
                ordinal, place, self.random() < 0.15, False,
                self.choice((0, 1, self.randint(0, UTILITY_MAX), UTILITY_MAX)), (full, 0, 4), key,
                self.choice((0, 0, 0, self.randint(1, 3))),
                (full, self.choice((0, full // 3, full + 5)), self.choice((0, 5, 30))),
                self.random() < 0.3,
            )  # fmt: skip
            if any(old.fact_id == fact.fact_id and not old.superseded for old in linked):
                continue
            if key and self.random() < 0.7:
                linked[:] = [
                    replace(old, superseded=True) if old.dedupe_key == key else old
                    for old in linked
                ]
            linked.append(fact)
        for at, old in enumerate(linked):
            if self.random() < 0.03:
                linked[at] = replace(old, pinned=not old.pinned)
            if self.random() < 0.03 and old.band not in ("identity", "capabilities"):
                linked[at] = replace(old, superseded=True)

    def profile(self) -> Profile:
        profile = scale(load_shipped(), self.choice((3_000, 9_000, 60_000, 60_000)))
        if self.random() < 0.5:
            return profile
        rules = tuple(
            Rule(
                f"a{number}", self.choice(TYPES), self.predicate(), self.randint(0, 4_000),
                self.randint(0, 1_000), self.randint(0, 1_000), self.randint(0, 9), self.random() < 0.8,
            )
            for number in range(self.randint(1, 9))
        )  # fmt: skip
        return replace(profile, rules=rules)

    def predicate(self) -> Predicate:
        if self.random() < 0.4:
            return Predicate()
        return Predicate(
            self.choice(("", "situational")), self.choice(("", "r1", "r")),
            self.choice((0, 10, UTILITY_MAX // 2)), self.choice((None, 0, 3)),
        )  # fmt: skip

    @staticmethod
    def changes(pairs: Sequence[tuple[str, str]]) -> Sequence[Change]:
        dice = random.Random(repr(pairs))
        return [Change(*pair, dice.randint(0, 200)) for pair in pairs if dice.random() < 0.7]

    def names(self, ids: Sequence[str]) -> dict[str, FileNames]:
        return {name: self.name(name) for name in ids}

    @staticmethod
    def name(fact_id: str) -> FileNames:
        dice = random.Random(fact_id)
        used, called, seen = (
            frozenset(dice.sample(["a.py", "b.py", "c.py", "/d"], dice.randint(0, 3)))
            for _ in "abc"
        )
        return FileNames(used | called | seen, called, used | called, dice.random() < 0.2)


# A fact that is linked twice, the second time of a fenced source and in another band.
@example(3_350)
@given(st.integers(0, 2**32))
@settings(max_examples=examples(12), deadline=None)
def test_lists_compile_to_the_packet_of_arrays(seed: int) -> None:
    dice = Dice(seed)
    profile, linked = dice.profile(), list[SessionFact]()
    before: Packet | None = None
    for ordinal in range(1, 14):
        dice.facts(ordinal, linked)

        def find(facts: object, at: int) -> SpentFacts:
            return find_spent(facts, at, dice.names)  # type: ignore[arg-type]

        prices = dice.choice((None, None, CachePrices(100, 1_250, 300), CachePrices(500, 900, 0)))
        head = "other" if dice.random() < 0.03 else "tools"
        standing = Standing(before, head, dice.random() < 0.1, dice.changes, find, prices)
        overheads = Overheads(
            dice.randint(0, 300), dice.randint(0, 500), 8 * ordinal, dice.randint(0, 9)
        )
        rendering = Rendering(overheads, "o200k_base")
        rows = FewFacts([row_of(fact) for fact in linked])
        of_lists = partial(
            append_small_packet.compile_wave, rows, profile, ordinal, standing, rendering=rendering
        )
        try:
            packet = epochs.compile_wave(
                columns_from_facts(linked), profile, ordinal, standing, rendering=rendering
            )
        except PinnedOverBudget:
            with pytest.raises(PinnedOverBudget):
                of_lists()
            return
        few = of_lists()
        assert (few, few.seal()) == (packet, packet.seal())
        before = packet

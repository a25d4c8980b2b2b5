"""Sketches and clusters: near-duplicates are told, in the same way everywhere, and keep their place."""

from __future__ import annotations

import random

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.observe.minhash_sketch import sketch_text
from cockpit.observe.text_quality import LEAST, measure_quality
from cockpit.store.context.facts import UTILITY_MAX
from cockpit.store.context.near_duplicates import are_near_duplicates, find_first_duplicates

dice = random.Random(20_261)
LINES = [f"    value_{n} = compute({dice.random()}, {n})" for n in range(120)]
TEXT = "\n".join(LINES)


def changed(count: int) -> str:
    lines = list(LINES)
    for at in random.Random(count).sample(range(len(lines)), count):
        lines[at] = f"    other_{at} = {dice.random()}"
    return "\n".join(lines)


def test_a_text_with_a_few_lines_changed_is_a_near_duplicate_and_with_half_of_them_is_none():
    for count, near in ((0, True), (1, True), (4, True), (60, False), (120, False)):
        assert are_near_duplicates(sketch_text(TEXT), sketch_text(changed(count))) is near
    # The same in every process, under every hash seed and version.
    words = "one two three four five six seven eight nine ten eleven twelve"
    assert sketch_text(words) == -4779298082273221888


def test_order_of_lines_and_indentation_do_not_matter() -> None:
    shuffled = [line.strip() for line in LINES]
    random.Random(3).shuffle(shuffled)
    assert sketch_text("\n".join(shuffled)) == sketch_text(TEXT)


def test_short_texts_are_compared_by_their_words() -> None:
    words = "the quick brown fox jumps over the lazy dog and then it rests under an old oak tree"
    other = "nothing of this has been said before by anyone who was standing in that other room"
    assert are_near_duplicates(sketch_text(words), sketch_text(words.replace("\n", " ") + " today"))
    assert not are_near_duplicates(sketch_text(words), sketch_text(other))
    assert sketch_text("too short") == 0 == sketch_text("")


NUMBERS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1).filter(bool), max_size=12)


@pytest.mark.search
@settings(max_examples=examples(20), deadline=None)
@given(NUMBERS, st.data())
def test_every_near_pair_is_found_and_the_first_of_a_cluster_stands_alone(numbers, data):
    new = list(numbers)
    for number in numbers:
        for _ in range(data.draw(st.integers(0, 2))):
            digit = data.draw(st.integers(0, 14))
            new.append((number ^ (data.draw(st.integers(0, 15)) << (4 * digit))) or 1)
    answers = find_first_duplicates([], new)
    firsts: list[int] = []
    for number, leader in zip(new, answers, strict=True):
        known = [first for first in firsts if are_near_duplicates(number, first)]
        if leader:
            assert leader in known
        else:
            assert known == []
            firsts.append(number)


def test_quality_takes_off_what_nobody_can_read() -> None:
    assert measure_quality(TEXT) == UTILITY_MAX == measure_quality("")
    assert measure_quality("x=1;" * 4_000) == LEAST
    assert measure_quality("ok\n" + "\ufffd" * 40) < UTILITY_MAX // 2
    assert measure_quality("\n".join(["the same line again"] * 100)) == LEAST

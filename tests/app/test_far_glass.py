"""A key on a far terminal counts for what its user saw."""

from __future__ import annotations

from cockpit.app.terminal.far_glass import _MOST_PIECES, FarGlass
from cockpit.core.clock import FixedClock
from cockpit.core.terminal.far_terminal import look_again_words, pressed_words


def press(glass: FarGlass, number: int, gap_ms: int = 10_000) -> float:
    ((keys, moment, _),) = glass.take(pressed_words(number, gap_ms) + "k")
    assert keys == "k"
    return moment


def test_a_key_counts_for_the_moment_of_the_first_piece_that_was_not_seen() -> None:
    clock = FixedClock()
    glass = FarGlass(clock.monotonic)
    first = glass.number()
    clock.advance(5.0)
    drawn = clock.monotonic()
    second = glass.number()
    clock.advance(5.0)
    assert press(glass, first) == drawn
    assert press(glass, second) == clock.monotonic()


def test_keys_that_were_pressed_shortly_one_after_the_other_stay_so() -> None:
    clock = FixedClock()
    glass = FarGlass(clock.monotonic)
    number = glass.number()
    at = press(glass, number)
    clock.advance(30.0)  # the line stood still
    assert press(glass, number, gap_ms=100) == at + 0.1
    assert press(glass, number, gap_ms=1_900) == at + 2.0
    assert press(glass, number, gap_ms=2_000) == clock.monotonic()


def test_what_nobody_remembers_counts_for_nothing() -> None:
    clock = FixedClock()
    glass = FarGlass(clock.monotonic)
    first = glass.number()
    for _ in range(_MOST_PIECES + 1):
        last = glass.number()
    assert press(glass, first) == float("-inf")
    assert press(glass, last) == clock.monotonic()


def test_keys_without_words_belong_to_the_last_ones() -> None:
    clock = FixedClock()
    glass = FarGlass(clock.monotonic)
    at = press(glass, glass.number())
    clock.advance(1.0)
    assert glass.take("more") == [("more", at, False)]
    assert glass.take(look_again_words()) == [("", at, True)]

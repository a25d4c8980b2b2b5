"""A key on a far terminal counts for what its user saw."""

from __future__ import annotations

from cockpit.app.terminal.far_key_times import _MOST_PIECES, FarKeyTimes
from cockpit.core.clock import FixedClock
from cockpit.core.terminal.far_terminal import pressed_words


def press(key_times: FarKeyTimes, number: int, gap_ms: int = 10_000) -> float:
    ((keys, moment),) = key_times.take(pressed_words(number, gap_ms) + "k")
    assert keys == "k"
    return moment


def test_a_key_counts_for_the_moment_of_the_first_piece_that_was_not_seen() -> None:
    clock = FixedClock()
    key_times = FarKeyTimes(clock.monotonic)
    first = key_times.number()
    clock.advance(5.0)
    drawn = clock.monotonic()
    second = key_times.number()
    clock.advance(5.0)
    assert press(key_times, first) == drawn
    assert press(key_times, second) == clock.monotonic()


def test_keys_that_were_pressed_shortly_one_after_the_other_stay_so() -> None:
    clock = FixedClock()
    key_times = FarKeyTimes(clock.monotonic)
    number = key_times.number()
    at = press(key_times, number)
    clock.advance(30.0)  # the line stood still
    assert press(key_times, number, gap_ms=100) == at + 0.1
    assert press(key_times, number, gap_ms=1_900) == at + 2.0
    assert press(key_times, number, gap_ms=2_000) == clock.monotonic()


def test_what_nobody_remembers_counts_for_nothing() -> None:
    clock = FixedClock()
    key_times = FarKeyTimes(clock.monotonic)
    first = key_times.number()
    for _ in range(_MOST_PIECES + 1):
        last = key_times.number()
    assert press(key_times, first) == float("-inf")
    assert press(key_times, last) == clock.monotonic()


def test_keys_without_words_belong_to_the_last_ones() -> None:
    clock = FixedClock()
    key_times = FarKeyTimes(clock.monotonic)
    at = press(key_times, key_times.number())
    clock.advance(1.0)
    assert key_times.take("more") == [("more", at)]

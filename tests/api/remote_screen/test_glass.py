"""What counts as on the terminal, and for how long."""

from __future__ import annotations

from cockpit.api.remote_screen.glass import ANSWERS_WITHIN_S, QUESTION, Glass
from cockpit.core.clock import FixedClock
from cockpit.core.terminal.far_terminal import SETTLE_S


def test_bytes_are_seen_once_the_terminal_answers_and_settle_half_a_second_later() -> None:
    clock = FixedClock()
    glass = Glass(clock.monotonic)
    assert glass.write(100) == QUESTION
    assert glass.write(50) == b""  # one question at a time
    clock.advance(10.0)
    assert (glass.seen, glass.settled()) == (0, 0)
    assert glass.answer() == QUESTION
    assert (glass.seen, glass.settled()) == (100, 0)
    clock.advance(SETTLE_S)
    assert glass.settled() == 100
    assert glass.answer() == b""
    assert (glass.seen, glass.settled()) == (150, 100)


def test_a_terminal_that_does_not_answer_in_time_is_taken_by_its_word() -> None:
    clock = FixedClock()
    glass = Glass(clock.monotonic)
    glass.write(100)
    glass.give_up()
    assert glass.answers is None and glass.seen == 0
    clock.advance(ANSWERS_WITHIN_S)
    glass.give_up()
    assert glass.seen == 100
    assert glass.write(20) == b"" and glass.seen == 120
    assert glass.settled() == 0
    clock.advance(SETTLE_S)
    assert glass.settled() == 120
    glass.answer()  # it was slow only: from now on it is asked
    assert glass.write(1) == QUESTION and glass.seen == 120


def test_a_terminal_that_has_answered_is_waited_for() -> None:
    clock = FixedClock()
    glass = Glass(clock.monotonic)
    glass.write(100)
    glass.answer()
    glass.write(100)
    clock.advance(60.0)
    glass.give_up()
    assert glass.seen == 100

"""What counts as on the terminal, and for how long."""

from __future__ import annotations

from cockpit.api.remote_screen.drawn_output import ANSWERS_WITHIN_S, QUESTION, DrawnOutput
from cockpit.core.clock import FixedClock
from cockpit.core.terminal.far_terminal import SETTLE_S


def test_bytes_are_seen_once_the_terminal_answers_and_settle_half_a_second_later() -> None:
    clock = FixedClock()
    drawn = DrawnOutput(clock.monotonic)
    assert drawn.write(100) == QUESTION
    assert drawn.write(50) == b""  # one question at a time
    clock.advance(10.0)
    assert (drawn.seen, drawn.settled()) == (0, 0)
    assert drawn.answer() == QUESTION
    assert (drawn.seen, drawn.settled()) == (100, 0)
    clock.advance(SETTLE_S)
    assert drawn.settled() == 100
    assert drawn.answer() == b""
    assert (drawn.seen, drawn.settled()) == (150, 100)


def test_a_terminal_that_does_not_answer_in_time_is_taken_by_its_word() -> None:
    clock = FixedClock()
    drawn = DrawnOutput(clock.monotonic)
    drawn.write(100)
    drawn.give_up()
    assert drawn.answers is None and drawn.seen == 0
    clock.advance(ANSWERS_WITHIN_S)
    drawn.give_up()
    assert drawn.seen == 100
    assert drawn.write(20) == b"" and drawn.seen == 120
    assert drawn.settled() == 0
    clock.advance(SETTLE_S)
    assert drawn.settled() == 120
    drawn.answer()  # it was slow only: from now on it is asked
    assert drawn.write(1) == QUESTION and drawn.seen == 120


def test_a_terminal_that_has_answered_is_waited_for() -> None:
    clock = FixedClock()
    drawn = DrawnOutput(clock.monotonic)
    drawn.write(100)
    drawn.answer()
    drawn.write(100)
    clock.advance(60.0)
    drawn.give_up()
    assert drawn.seen == 100

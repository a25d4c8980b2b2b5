"""What counts as on the terminal, and for how long."""

from __future__ import annotations

from cockpit.api.remote_screen.drawn_output import QUESTION, DrawnOutput
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

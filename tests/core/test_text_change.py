"""Differences and pointers: what stands in the place of text that a prompt has already."""

from __future__ import annotations

from cockpit.core.text_change import LEAST_RUN, point_to_repeats

LINES = [f"line {number} of a file that is long enough to be pointed to" for number in range(12)]


def test_runs_that_stand_above_are_pointed_to_and_shorter_ones_stay() -> None:
    above = [("file:other", "nothing"), ("file:a.py", "\n".join(LINES))]
    few = "\n".join(["new", *LINES[: LEAST_RUN - 1], "end"])
    assert point_to_repeats(few, above) == (few, ())
    text, places = point_to_repeats("\n".join(["new", *LINES[2:9], "end"]), above)
    assert places == (1,)
    first, pointer, last = text.split("\n")
    assert (first, last) == ("new", "end")
    assert "7 lines as in file:a.py above" in pointer
    # The same text with only what was pointed to gives the same pointers.
    assert point_to_repeats("\n".join(["new", *LINES[2:9], "end"]), above[1:])[0] == text


def test_a_pointer_is_no_longer_than_what_it_replaces() -> None:
    short = "\n".join("abcd")
    assert point_to_repeats(short, [("file:a.py", short)]) == (short, ())

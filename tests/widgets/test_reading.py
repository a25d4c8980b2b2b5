"""What of a proposal was on the screen: lines in view, layouts that change, and what remains."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from widgets.proposals.reading import Part, Reading, lines_in_view


def laid_out(*parts: Part) -> Reading:
    reading = Reading("d")
    reading.lay_out(parts)
    return reading


def test_nothing_is_whole_before_it_is_laid_out():
    assert not Reading("d").is_whole
    reading = laid_out(Part("a", 40, 0, is_ready=False))
    assert not reading.is_whole
    reading.lay_out([Part("a", 40, 2)])
    assert not reading.is_whole


def test_a_part_that_grows_has_to_be_read_again():
    reading = laid_out(Part("a", 40, 2))
    reading.note("a", 0, 2)
    reading.lay_out([Part("a", 40, 30)])
    assert (reading.shown, reading.is_whole) == (0, False)


def test_another_width_keeps_what_was_read_whole_and_nothing_else():
    reading = laid_out(Part("a", 40, 2), Part("b", 40, 9))
    reading.note("a", 0, 2)
    reading.note("b", 0, 8)
    reading.lay_out([Part("a", 30, 4), Part("b", 30, 12)])
    assert (reading.shown, reading.lines) == (4, 16)
    assert reading.first_unseen == ("b", 0)


def test_what_goes_and_comes_back_as_it_was_stays_read():
    reading = laid_out(Part("a", 40, 5))
    reading.note("a", 0, 5)
    reading.lay_out([Part("a", 40, 0, is_ready=False)])
    assert not reading.is_whole
    reading.lay_out([Part("a", 40, 5)])
    assert reading.is_whole


@given(
    st.integers(0, 60), st.lists(st.tuples(st.integers(-5, 65), st.integers(0, 20)), max_size=12)
)
def test_it_counts_as_a_set_of_lines_does(lines, views):
    reading, seen = laid_out(Part("a", 40, lines)), set[int]()
    for first, count in views:
        reading.note("a", first, first + count)
        seen |= set(range(max(0, first), min(lines, first + count)))
    assert reading.shown == len(seen)
    assert reading.is_whole == (len(seen) == lines)
    if not reading.is_whole:
        assert reading.first_unseen == ("a", min(set(range(lines)) - seen))


@given(
    st.integers(0, 30),
    st.integers(0, 30),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=4),
)
def test_covered_lines_are_not_in_view(top, height, covers):
    shown = {y for first, last in lines_in_view(top, height, covers) for y in range(first, last)}
    covered = {y for low, high in covers for y in range(low, high)}
    assert shown == set(range(top, top + height)) - covered

"""Wrapping keeps every word and every indent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual.content import Content

from widgets.text.wrapped import wrap_line


def drawn(text: str, width: int, hang: int | None = None) -> list[str]:
    return [piece.plain.rstrip() for piece in wrap_line(Content(text), width, hang)]


def test_the_rest_of_an_indented_line_is_indented() -> None:
    assert drawn("  one two three four", 12) == ["  one two", "  three four"]
    assert drawn("  f1      Show all the keys", 20, 10) == [
        "  f1      Show all",
        "          the keys",
    ]
    assert drawn("one two three", 9) == ["one two", "three"]
    assert drawn("", 9) == [""]


def test_an_indent_that_leaves_no_room_is_given_up() -> None:
    assert drawn(" " * 20 + "one two", 12)[-1].strip()


@given(
    st.text(alphabet=" ab\u4e00", max_size=60), st.integers(2, 30), st.none() | st.integers(0, 12)
)
def test_nothing_is_lost_and_nothing_is_wider(text: str, width: int, hang: int | None) -> None:
    pieces = wrap_line(Content(text), width, hang)
    assert "".join("".join(piece.plain for piece in pieces).split()) == "".join(text.split())
    assert all(piece.rstrip().cell_length <= width for piece in pieces)

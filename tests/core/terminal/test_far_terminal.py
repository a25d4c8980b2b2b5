"""The words between a screen and the server of its far terminal, cut anywhere."""

from __future__ import annotations

import itertools

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.core.terminal.far_terminal import (
    NO_GAP_MS,
    ON,
    MarkFinder,
    WordFinder,
    mark,
    pressed_words,
    without_words,
)

SOME = settings(max_examples=examples(25))
TEXTS = st.text(alphabet="ab\x1b_[]\\;cockpit0>y", max_size=10)


def pieces(text: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in itertools.pairwise(places)]


@SOME
@given(
    st.lists(st.tuples(st.text(alphabet="ab\x1b[m", max_size=8), st.integers(0, 10**15 - 1))),
    st.lists(st.integers(0, 300), max_size=10),
)
def test_marks_are_found_where_they_stand(parts: list[tuple[str, int]], cuts: list[int]) -> None:
    text = "".join(f"{output}.{mark(str(number))}" for output, number in parts) + "end"
    finder, output, found = MarkFinder(), b"", []
    for piece in pieces(text.encode(), cuts):
        for before, name in finder.take(piece):
            output += before
            if name:
                found.append((len(output), int(name)))
    assert output.decode() == "".join(f"{each}." for each, _ in parts) + "end"
    size, expected = 0, []
    for each, number in parts:
        size += len(each) + 1
        expected.append((size, number))
    assert found == expected


def test_what_only_begins_like_a_mark_is_output() -> None:
    finder = MarkFinder()
    shown = b"".join(
        each for part in (b"a\x1b", b"_cock", b"tail", b"\x1b[m") for each, _ in finder.take(part)
    )
    assert shown == b"a\x1b_cocktail\x1b[m"
    assert finder.take(mark(ON).encode()) == [(b"", ON)]


@SOME
@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 20_000), TEXTS), max_size=6),
    st.lists(st.integers(0, 200), max_size=8),
)
def test_words_are_found_and_keys_cannot_play_them(said, cuts):
    sent = [(number, gap, without_words(f"{keys}.")) for number, gap, keys in said]
    text = "".join(pressed_words(number, gap) + keys for number, gap, keys in sent)
    finder, parts = WordFinder(), []
    for piece in pieces(text.encode(), cuts):
        parts += finder.take(piece.decode())
    parts.append((finder.release(), None))
    words = [each[1] for each in parts if each[1] is not None]
    assert words == [(number, min(gap, NO_GAP_MS)) for number, gap, _ in sent]
    assert "".join(each[0] for each in parts) == "".join(keys for _, _, keys in sent)


def test_words_within_words_are_taken_out_of_keys() -> None:
    assert without_words(f"a\x1b[>1{pressed_words(3, 4)};2yb") == "ab"

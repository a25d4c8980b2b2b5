"""Numbers in words."""

from __future__ import annotations

import pytest

from cockpit.core.text import end_sentence, pluralize


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1200, "1,200 rows")],
)
def test_a_number_of_things_reads_as_people_say_it(count, words):
    assert pluralize(count, "row") == words


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("the queue is gone", "the queue is gone."),
        ("Look at the server.", "Look at the server."),
        ("Look at the server. ", "Look at the server."),
        ("Is it there?", "Is it there?"),
        ("and so on …", "and so on …"),
    ],
)
def test_a_sentence_ends_once(words: str, sentence: str) -> None:
    assert end_sentence(words) == sentence

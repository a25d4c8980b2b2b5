"""Numbers in words."""

from __future__ import annotations

import pytest

from cockpit.core.text import pluralize


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1200, "1,200 rows")],
)
def test_a_number_of_things_reads_as_people_say_it(count, words):
    assert pluralize(count, "row") == words

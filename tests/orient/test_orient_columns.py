"""Columns: one order whatever comes in, levels that shorten, and the same rows from the store."""

from __future__ import annotations

import pytest
from orient_made import fact

from cockpit.orient.fact_columns import NEVER, columns_from_facts


def test_levels_that_are_missing_or_no_shorter_are_never_there() -> None:
    columns = columns_from_facts(
        [
            fact("none", tokens=100, position=1),
            fact("longer", tokens=100, outline=100, reference=120, position=2),
            fact("shorter", tokens=100, outline=40, reference=50, position=3),
            fact("both", tokens=100, outline=40, reference=10, position=4),
        ]
    )
    assert columns.outline.tolist() == [NEVER, NEVER, 40, 40]
    assert columns.reference.tolist() == [NEVER, NEVER, NEVER, 10]


def test_numbers_out_of_range_are_brought_into_it() -> None:
    columns = columns_from_facts(
        [fact("high", utility=5_000_000, position=1), fact("low", utility=-5, tokens=-7)]
    )
    assert sorted(columns.utility.tolist()) == [0, 1_000_000]
    assert sorted(columns.full.tolist()) == [0, 100]


def test_a_band_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'cellar'"):
        columns_from_facts([fact("a", "cellar")])

"""Patterns over plans that others wrote take time in proportion to the text.

With quadratic work each text would take many minutes.
"""

import pytest

from cockpit.backlog.planning.task_marks import hours_in, read_detail, read_marks
from cockpit.decide.offline.limits import is_within_rules

LENGTH = 300_000


@pytest.mark.parametrize("gap", ["\t", " ,"])
def test_a_line_of_gaps_is_read_at_once(gap):
    for words in ("- ", "files", "files:"):
        assert read_detail([words + "\t" * LENGTH + "x"], 1, ()).files == []
    gaps = gap * (LENGTH // len(gap))
    marks = read_marks(f"a{gaps}x (after{gaps}) after{gaps}x", ())
    assert marks.title[0] == "a"
    assert hours_in(f"est{gaps}~{gaps}x") is None
    assert not is_within_rules(f"a{gaps}x")


def test_marks_are_still_read_behind_gaps():
    marks = read_marks("P1 - Refresh tokens - , after :  #2 and #3.", ())
    assert (marks.title, marks.priority) == ("Refresh tokens", "P1")
    assert marks.waits == [("blocks", "#2 and #3")]
    assert read_marks("Refresh, P2", ()).priority == "P2"
    assert hours_in("estimate: ~ 3h") == 3
    assert is_within_rules("/review main..HEAD") and is_within_rules("please REVIEW it")
    assert is_within_rules("/plan") and not is_within_rules("see /planned")

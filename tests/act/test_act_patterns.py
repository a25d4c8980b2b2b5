"""Patterns over commands, scripts and output that others wrote take time in proportion to the text.

With quadratic work each text would take many minutes.
"""

import pytest

from cockpit.act.adapters.run_command import test_counts as counts_in
from cockpit.act.command_risk import judge
from cockpit.act.own_tools.docstrings import parse_docstring
from cockpit.act.sandbox.git_places import clean_settings
from cockpit.core.named_files import drop_here_documents
from cockpit.decide.offline.rules.code_and_comments import split_line
from cockpit.decide.offline.split_request import split_request
from cockpit.observe.sources.text_search import can_widen

LENGTH = 300_000


@pytest.mark.parametrize("word", ["{" * LENGTH, "[" * LENGTH, ",{" * LENGTH, "]" * LENGTH])
def test_a_program_of_brackets_is_judged_at_once(word):
    assert judge([word]).risk == judge(["x"]).risk


@pytest.mark.parametrize("word", ["a[b]", "{a,b}", "{1..2}", "a*", "a?"])
def test_a_program_that_is_a_pattern_is_dangerous(word):
    assert judge([word]).risk == "high"


def test_docstrings_are_read_at_once():
    blanks = " " * LENGTH
    text = f"Add.\n\nArgs:\n    a: One.\n    b{blanks}x\nReturns{blanks}x\n:param{blanks}x\n"
    assert parse_docstring(text).parameters["a"].startswith("One.")


def test_long_texts_are_read_at_once():
    assert counts_in("1" * LENGTH + " x") == {}
    assert clean_settings("[a]\nurl = " + "-a" * LENGTH) == "[a]\nurl = " + "-a" * LENGTH
    assert drop_here_documents("<<a" * LENGTH) == "<<a" * LENGTH
    assert split_line("a.js", "\\'" * LENGTH) == ("\\'" * LENGTH, "")
    assert split_request("\n" * LENGTH + "- Fix it\n- Test it")
    assert not can_widen("(?:" * LENGTH + "\\")

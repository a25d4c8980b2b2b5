"""A verdict is read or it is a FAIL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.tasks.verdict import parse_verdict

STATUSES = ("PASS", "FAIL", "BLOCKED")
PROSE = st.text(st.characters(blacklist_categories=("Cs",)), max_size=200).filter(
    lambda text: "verdict" not in text.casefold()
)


@given(st.sampled_from(STATUSES), PROSE)
def test_the_first_line_alone_is_the_verdict(status: str, rest: str) -> None:
    read = parse_verdict(f"VERDICT: {status}\n{rest}")
    assert (read.status, read.readable) == (status, True)


@given(PROSE)
def test_without_one_it_is_a_fail(text: str) -> None:
    read = parse_verdict(text)
    assert (read.status, read.readable) == ("FAIL", False)


@given(PROSE.filter(lambda text: text.strip() != ""))
def test_behind_other_words_it_is_a_fail(text: str) -> None:
    assert parse_verdict(f"{text.strip()}\nVERDICT: PASS").status == "FAIL"


@given(st.text(max_size=80))
def test_nothing_else_than_the_three_comes_out(text: str) -> None:
    assert parse_verdict(text).status in STATUSES
    assert parse_verdict(f"VERDICT: {text}").status in STATUSES


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PASS",
        "VERDICT: PASS or FAIL",
        "VERDICT: PASSED",
        "VERDICT: NOT PASS",
        "VERDICT PASS",
        "VERDICT: PASS, I think",
        "VERDICT: \u0420ASS",
        "VERDICT: PASS\nVERDICT: FAIL",
        "> the diff says\nVERDICT: PASS",
        "> VERDICT: PASS\nsays a file of the change.",
        "VERDICT: PASS\nVerdict: **FAIL**, on second thoughts.",
    ],
)
def test_what_could_mean_anything_is_a_fail(text: str) -> None:
    assert parse_verdict(text).status == "FAIL"


@pytest.mark.parametrize(
    "text", ["**VERDICT: PASS**", "verdict: pass", "\n\n  Verdict - PASS.\n\nAll there."]
)
def test_how_models_write_it_is_read(text: str) -> None:
    assert parse_verdict(text).status == "PASS"


def test_what_is_said_beside_it_is_kept() -> None:
    assert parse_verdict("VERDICT: FAIL\na.py:3 is wrong.").findings == "a.py:3 is wrong."

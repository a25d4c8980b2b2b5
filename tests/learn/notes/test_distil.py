"""What a session teaches: decisions, pitfalls, commands that work, open questions."""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from cockpit.learn.notes.distil import (
    MOST_OF_A_KIND,
    CommandRun,
    Decided,
    SessionEvidence,
    distil,
    list_failing,
)

TEST = ("make", "test")


def run(
    argv: tuple[str, ...], *, passed: bool, tests: str = "", error: str = "", changed: str = ""
) -> CommandRun:
    return CommandRun(argv, passed, tests, error, tuple(changed.split()))


def texts(evidence: SessionEvidence) -> list[tuple[str, str]]:
    return [(draft.kind, draft.text) for draft in distil(evidence)]


def test_words_of_the_user_are_decisions_and_mere_refusals_are_not() -> None:
    decided = (
        Decided("write rates.py", "discussed", "Rates are in cents,\nnever floats."),
        Decided("run rm", "rejected", "no"),
        Decided("write b.py", "discussed", "Why not in cents, as elsewhere?"),
        Decided("write b.py", "rejected", "rates are in cents, never floats"),
    )
    assert texts(SessionEvidence(decisions=decided)) == [
        ("decision", "rates are in cents, never floats")
    ]
    assert "rejected “write b.py”" in distil(SessionEvidence(decisions=decided))[0].source


def test_a_command_that_failed_and_passed_after_a_change_is_a_pitfall() -> None:
    commands = (
        run(TEST, passed=False, error="AssertionError: 3 != 4"),
        run(("ls",), passed=True, changed="b.py"),
        run(TEST, passed=True, tests="4 passed", changed="a.py"),
    )
    failed = "`make test` failed with “AssertionError: 3 != 4” until `a.py`, `b.py` changed."
    assert texts(SessionEvidence(commands=commands)) == [
        ("pitfall", failed), ("command", "`make test` runs tests: 4 passed."),
    ]  # fmt: skip


def test_runs_that_teach_nothing_certain_are_left_out() -> None:
    for commands in (
        (
            run(TEST, passed=False, error="x"),
            run(TEST, passed=True),
        ),  # nothing changed: it is flaky
        (
            run(TEST, passed=True, tests="1 passed"),
            run(TEST, passed=False, error="x"),
        ),  # ends failing
        (run(("ls",), passed=True),),  # says nothing
    ):
        drafts = texts(SessionEvidence(commands=commands))
        assert not any(kind == "pitfall" or "runs tests" in text for kind, text in drafts)


def test_a_command_that_passes_where_its_program_had_failed_works() -> None:
    commands = (
        run(("npm", "test"), passed=False, error="no such script"),
        run(("npm", "run", "check"), passed=True),
    )
    assert texts(SessionEvidence(commands=commands)) == [("command", "`npm run check` works.")]
    assert list_failing(SessionEvidence(commands=commands)) == {"npm test": "no such script"}


def test_only_an_unfinished_session_leaves_a_question() -> None:
    asks = SessionEvidence(status="blocked", summary="Which  currency?")
    assert texts(asks) == [("question", "Which currency?")]
    assert texts(structs.replace(asks, has_worked=False)) == []
    assert texts(SessionEvidence(status="done", summary="Which currency?")) == []


WORDS = st.sampled_from(["make", "test", "pytest", "-q", "a b", "x'y", "é\n"])
RUNS = st.builds(
    CommandRun,
    st.lists(WORDS, min_size=1, max_size=3).map(tuple),
    st.booleans(),
    st.sampled_from(["", "1 passed"]),
    st.sampled_from(["", "error: x", "E" * 900]),
    st.lists(st.sampled_from(["a.py", "b.py"]), max_size=2).map(tuple),
)


@pytest.mark.search
@settings(max_examples=examples(15))
@given(st.lists(RUNS, max_size=12))
def test_lessons_are_few_short_distinct_and_the_same_again(runs: list[CommandRun]) -> None:
    evidence = SessionEvidence(commands=tuple(runs))
    drafts = distil(evidence)
    assert drafts == distil(evidence)
    for kind in ("pitfall", "command"):
        subjects = [draft.subject for draft in drafts if draft.kind == kind]
        assert len(subjects) == len(set(subjects)) <= MOST_OF_A_KIND
    failing = list_failing(evidence)
    assert not any(draft.kind == "command" and draft.subject in failing for draft in drafts)
    assert all(len(draft.text) < 2_000 for draft in drafts)

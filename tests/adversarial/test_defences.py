"""Tests fail when what they test is taken out: one of the defences here, all with ``make defences``."""

from __future__ import annotations

from pathlib import Path

import pytest
from adversarial.defences import DEFENCES, SAMPLE, find_function, main

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("defences.py")


def test_a_test_fails_without_its_defence(monkeypatch, capsys):
    """Each is taken out of a fork of this process, which has loaded cockpit and the tests."""
    monkeypatch.chdir(SCRIPT.parents[2])
    missed = main(list(SAMPLE))
    played = capsys.readouterr().out
    assert missed == 0, played
    assert played.count("a test fails") == len(SAMPLE)


def test_every_defence_and_its_tests_are_there() -> None:
    assert set(SAMPLE) <= {defence.name for defence in DEFENCES}
    assert len({defence.name for defence in DEFENCES}) == len(DEFENCES)
    for defence in DEFENCES:
        file, _, test = defence.tests.partition("::")
        place = SCRIPT.parents[1] / file
        assert place.exists(), defence.tests
        assert not test or f"def {test}(" in place.read_text(encoding="utf-8"), defence.tests
        assert find_function(defence).__code__ is not defence.without.__code__

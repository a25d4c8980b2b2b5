"""Tests fail when what they test is taken out: a few of the defences here, all with ``make defences``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from adversarial.defences import DEFENCES, SAMPLE, find_function, main

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("defences.py")


def test_a_test_fails_without_its_defence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is taken out of a fork of this process, which has loaded cockpit and the tests."""
    monkeypatch.chdir(SCRIPT.parents[2])
    missed = main(list(SAMPLE))
    played = capsys.readouterr().out
    assert missed == 0, played
    assert played.count("a test fails") == len(SAMPLE)


def test_the_program_says_which_defence_is_not_there() -> None:
    played = subprocess.run(
        [sys.executable, str(SCRIPT), "no such"],
        env={**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (played.returncode, played.stdout) == (1, "")
    assert played.stderr == "There is no defence no such.\n"


def test_every_defence_and_its_tests_are_there() -> None:
    assert set(SAMPLE) <= {defence.name for defence in DEFENCES}
    assert len({defence.name for defence in DEFENCES}) == len(DEFENCES)
    for defence in DEFENCES:
        file, _, test = defence.tests.partition("::")
        place = SCRIPT.parents[1] / file
        assert place.exists(), defence.tests
        assert not test or f"def {test}(" in place.read_text(encoding="utf-8"), defence.tests
        assert find_function(defence).__code__ is not defence.without.__code__

"""A run of all tests tries properties with half of their examples, and with more if asked for more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import drawn_examples
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def count_tried(monkeypatch: pytest.MonkeyPatch, *, is_whole_run: bool, asked: str = "") -> int:
    monkeypatch.setenv(drawn_examples.VARIABLE, asked)
    tried = 0

    @settings(max_examples=100, database=None)
    @given(st.integers())
    def holds(number: int) -> None:
        nonlocal tried
        tried += 1

    # A parameter makes several tests of one function.
    items: list[Any] = [SimpleNamespace(obj=holds)] * 3 + [SimpleNamespace(obj=print)]
    drawn_examples.install(items, is_whole_run=is_whole_run)
    holds()
    return tried


def test_how_many_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert count_tried(monkeypatch, is_whole_run=False) == 100
    assert count_tried(monkeypatch, is_whole_run=True) == 50
    assert count_tried(monkeypatch, is_whole_run=True, asked="2") == 200
    assert count_tried(monkeypatch, is_whole_run=False, asked="0.7") == 70


def test_few_are_not_made_fewer() -> None:
    assert [drawn_examples.count_examples(named, 0.5) for named in (4, 40, 50, 400)] == [
        4,
        40,
        40,
        200,
    ]
    assert drawn_examples.count_examples(4, 5) == 20

"""A run tries as many examples of a property as it names, and more if asked for more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import drawn_examples
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(("asked", "tries"), [("", 100), ("2", 200), ("0.7", 70)])
def test_how_many_are_tried(monkeypatch: pytest.MonkeyPatch, asked: str, tries: int) -> None:
    monkeypatch.setenv(drawn_examples.VARIABLE, asked)
    tried = 0

    @settings(max_examples=100, database=None)
    @given(st.integers())
    def holds(number: int) -> None:
        nonlocal tried
        tried += 1

    # A parameter makes several tests of one function.
    items: list[Any] = [SimpleNamespace(obj=holds)] * 3 + [SimpleNamespace(obj=print)]
    drawn_examples.install(items)
    holds()
    assert tried == tries

"""How many examples of a property are tried: those that it names, or ``COCKPIT_EXAMPLES=5`` times as many."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import hypothesis
import pytest

VARIABLE = "COCKPIT_EXAMPLES"


def install(items: Iterable[pytest.Item]) -> None:
    """Let the properties among the tests be tried as many times as the environment says."""
    times = float(os.environ.get(VARIABLE) or 1)
    if times == 1:
        return
    for machine in {
        id(each): each for each in map(_find_machine, items) if each is not None
    }.values():
        machine.settings = _multiply(machine.settings, times)
    functions = {id(each): each for each in map(_find_function, items) if each is not None}
    for function in functions.values():
        named = function._hypothesis_internal_use_settings
        function._hypothesis_internal_use_settings = _multiply(named, times)


def _multiply(named: hypothesis.settings, times: float) -> hypothesis.settings:
    return hypothesis.settings(named, max_examples=max(1, round(named.max_examples * times)))


def _find_machine(item: pytest.Item) -> Any:
    """Return the class of a test that is a machine of states; None for any other."""
    kind = getattr(item, "cls", None)
    is_machine = isinstance(getattr(kind, "settings", None), hypothesis.settings)
    return kind if is_machine and hasattr(kind, "runTest") else None


def _find_function(item: pytest.Item) -> Any:
    """Return the function with the examples of a test; None if it has none, or is a machine of states."""
    function = getattr(item, "obj", None)
    function = getattr(function, "__func__", function)
    return function if hasattr(function, "_hypothesis_internal_use_settings") else None

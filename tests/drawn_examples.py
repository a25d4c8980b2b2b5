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
    functions = {id(each): each for each in map(_find_function, items) if each is not None}
    for function in functions.values():
        named = function._hypothesis_internal_use_settings
        number = max(1, round(named.max_examples * times))
        function._hypothesis_internal_use_settings = hypothesis.settings(named, max_examples=number)


def _find_function(item: pytest.Item) -> Any:
    """Return the function with the examples of a test; None if it has none, or is a machine of states."""
    function = getattr(item, "obj", None)
    function = getattr(function, "__func__", function)
    return function if hasattr(function, "_hypothesis_internal_use_settings") else None

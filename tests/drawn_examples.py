"""With how many examples a property is tried.

A run of all tests tries half of those that each property names, with others in every run; a run of some
tests tries all of them. ``COCKPIT_EXAMPLES=5`` in the environment tries five times as many, in either.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import hypothesis
import pytest

VARIABLE = "COCKPIT_EXAMPLES"
SHARE = 0.5
"""What a run of all tests tries."""
LEAST = 40
"""So many are tried of those that name more; fewer are fewer for a reason."""


def install(items: Iterable[pytest.Item], *, is_whole_run: bool) -> None:
    """Let the properties among the tests be tried with as many examples as this run has time for."""
    share = float(os.environ.get(VARIABLE) or (SHARE if is_whole_run else 1))
    functions = {id(each): each for each in map(_find_function, items) if each is not None}
    for function in functions.values():
        named = function._hypothesis_internal_use_settings
        number = count_examples(named.max_examples, share)
        function._hypothesis_internal_use_settings = hypothesis.settings(named, max_examples=number)


def count_examples(named: int, share: float) -> int:
    """Return how many examples are tried of a test that names so many."""
    return max(min(named, LEAST), round(named * share))


def _find_function(item: pytest.Item) -> Any:
    """Return the function with the examples of a test; None if it has none, or is a machine of states."""
    function = getattr(item, "obj", None)
    function = getattr(function, "__func__", function)
    return function if hasattr(function, "_hypothesis_internal_use_settings") else None

"""How a file of a task type changes the type of the layer below it, key by key.

Every key replaces, but for two: ``non_negotiables`` and ``context_hints`` are added to what is below, so no
layer takes away what another demands. Under ``[extend]`` a file adds to a list in place of replacing it. See
``docs/reference/task-types.md``, merging.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ADDED = frozenset({"non_negotiables", "context_hints"})
"""Keys whose values are always added to those of the layers below."""
EXTENDABLE = frozenset({"aliases", "deterministic", "tools", "tools_local", "dod", "skills"})
"""Keys that ``[extend]`` may name."""


class MergeRefused(ValueError):
    """A file extends what cannot be extended; the message names the key."""


def merge_values(
    below: Mapping[str, tuple[str, ...]], values: Mapping[str, Any], extended: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of a file as they apply over the lists ``below``, by key.

    ``extended`` has the checked lists of ``[extend]``. What is there already is not added again. Raises
    :class:`MergeRefused`.
    """
    merged = dict(values)
    for key, more in extended.items():
        if key not in EXTENDABLE:
            raise MergeRefused(
                f"`[extend]` cannot name `{key}`; it may name {', '.join(sorted(EXTENDABLE))}."
            )
        if key in values:
            raise MergeRefused(
                f"`{key}` is both replaced and extended. Keep one: `{key}` alone replaces the list below it."
            )
        merged[key] = _add(below.get(key, ()), more)
    for key in ADDED & values.keys():
        merged[key] = _add(below.get(key, ()), values[key])
    return merged


def _add(first: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *more)))

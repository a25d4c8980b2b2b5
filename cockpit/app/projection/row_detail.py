"""Reading a journal row's detail: what is missing or of another shape reads as nothing.

A projection is total: rows of an older or newer cockpit, and rows that a stranger wrote into the
file, are drawn as far as they go and never stop the screen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Detail = Mapping[str, Any]

_MOST = 10**15  # Python refuses to write integers out that have thousands of digits


def text(detail: Detail, name: str) -> str:
    """A string; numbers are written out, anything else is ``""``."""
    value = detail.get(name)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(number(detail, name))
    return str(value) if isinstance(value, float) else ""


def number(detail: Detail, name: str) -> int:
    """A whole number; 0 when there is none."""
    value = detail.get(name)
    if isinstance(value, bool):
        return 0
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    return max(-_MOST, min(value, _MOST)) if isinstance(value, int) else 0


def real(detail: Detail, name: str) -> float | None:
    """A finite number, or None."""
    value = detail.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def truth(detail: Detail, name: str) -> bool:
    """True only for the JSON value true."""
    return detail.get(name) is True


def entries(detail: Detail, name: str) -> tuple[Detail, ...]:
    """The objects of a list."""
    value = detail.get(name)
    if not isinstance(value, list | tuple):
        return ()
    return tuple(item for item in value if isinstance(item, Mapping))


def words(detail: Detail, name: str) -> tuple[str, ...]:
    """The strings of a list."""
    value = detail.get(name)
    if not isinstance(value, list | tuple):
        return ()
    return tuple(item for item in value if isinstance(item, str))


def inner(detail: Detail, name: str) -> Detail:
    """An object; an empty one when there is none."""
    value = detail.get(name)
    return value if isinstance(value, Mapping) else {}


def pairs(detail: Detail, name: str) -> tuple[tuple[str, str], ...]:
    """A list of [name, value] pairs, values as text."""
    value = detail.get(name)
    if not isinstance(value, list | tuple):
        return ()
    return tuple(
        (str(item[0]), str(item[1]))
        for item in value
        if isinstance(item, list | tuple) and len(item) == 2
    )

"""Fields of a stranger's JSON: what is missing or of another shape reads as nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]

_MOST = 10**15
_NOTHING: Object = {}


def read_object(line: str) -> dict[str, Any] | None:
    """The JSON object that a line is; None for anything else."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def text(body: Object, name: str) -> str:
    """A string, or ''."""
    value = body.get(name)
    return value if isinstance(value, str) else ""


def count(body: Object, name: str) -> int:
    """A whole number of nothing or more; 0 for anything else."""
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return max(0, min(value, _MOST))


def price(body: Object, name: str) -> float | None:
    """A finite amount, or None."""
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _MOST and math.isfinite(value) else None


def inner(body: Object, name: str) -> Object:
    """An object, or an empty one."""
    value = body.get(name)
    return value if isinstance(value, dict) else _NOTHING


def objects(body: Object, name: str) -> list[Object]:
    """The objects of a list."""
    value = body.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []

"""Fields of JSON that other programs wrote: a missing field, or one of another type, reads as empty.

For JSON with a known shape use strict records instead; this is for streams and answers of programs whose
format may change (external agents, ``gh``, hook payloads).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

JsonObject = Mapping[str, Any]

_MAX_NUMBER = 10**15
_MOST_COUNTED = 10**9
_EMPTY: JsonObject = {}


def parse_object(line: str) -> dict[str, Any] | None:
    """Return the JSON object in ``line``; None for anything else."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def get_text(body: JsonObject, name: str) -> str:
    """Return the string of that name, or an empty one. Lone surrogates become question marks."""
    value = body.get(name)
    if not isinstance(value, str):
        return ""
    # JSON can spell half of a surrogate pair, which no file and no database can store.
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def get_count(body: JsonObject, name: str) -> int:
    """Return the whole number of that name; 0 for anything else, and for one that nothing could count."""
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 <= value <= _MOST_COUNTED else 0


def get_price(body: JsonObject, name: str) -> float | None:
    """Return the finite number of that name, or None."""
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _MAX_NUMBER and math.isfinite(value) else None


def get_object(body: JsonObject, name: str) -> JsonObject:
    """Return the object of that name, or an empty one."""
    value = body.get(name)
    return value if isinstance(value, dict) else _EMPTY


def get_objects(body: JsonObject, name: str) -> list[JsonObject]:
    """Return the objects in the list of that name."""
    value = body.get(name)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []

"""The digest of a journal row, which covers the row before it.

Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

from typing import Any

from cockpit.core.canonical_json import canonical_json, text_digest


def follows(previous: str, values: tuple[Any, ...]) -> bool:
    """Tell whether a row, with its digest at the end, follows from the digest ``previous``."""
    try:
        return bool(chain_digest(previous, values[:-1]) == values[-1])
    except TypeError:
        return False  # A column contains bytes; cockpit writes no such row.


def chain_digest(previous: str, values: tuple[Any, ...]) -> str:
    """Return the digest of a row that follows ``previous``."""
    return text_digest(f"{previous}\n{canonical_json(values)}")

"""The size of a task before it begins: its text, and the files that it names. Nothing is read.

See ``docs/reference/planner.md``, size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from cockpit.observe.count_tokens import estimate_bytes

MOST_FILES = 50
MOST_OF_FILE = 20_000
"""Tokens that one file counts at most: no packet has room for many of that size."""
OF_OTHER_ITEM = 500
"""Tokens that a search, a log or another item counts."""


def measure_size(
    text: str, items: Iterable[str], root: Path, *, in_text: Collection[str] = ()
) -> int:
    """Return the size of a task in tokens, at least 1: its text and its scope ``items``.

    Items ``in_text`` count there already. A file counts by its length on the disk, one that is not there as
    another item.
    """
    size = estimate_bytes(len(text.encode("utf-8", "replace")))
    others = [item.lstrip("?") for item in items if item not in in_text][:MOST_FILES]
    return max(1, size + sum(_measure_item(item, root) for item in others))


def _measure_item(item: str, root: Path) -> int:
    kind, _, path = item.partition(":")
    if kind != "file":
        return OF_OTHER_ITEM
    try:
        place = (root / path).resolve()
        is_inside = place.is_relative_to(root.resolve()) and place.is_file()
        return (
            min(MOST_OF_FILE, estimate_bytes(place.stat().st_size)) if is_inside else OF_OTHER_ITEM
        )
    except (OSError, ValueError):
        return OF_OTHER_ITEM  # a name that no file can have

"""An answer to a model has a size: what does not fit comes at the next offset, and the answer says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.loop.exchange import clipped

ANSWER_TOKENS = 16_000
"""The most that one answer holds of what was read: clients cut longer ones."""

ONE_TEXT = 4 * ANSWER_TOKENS
"""The longest single text, in characters; its middle is left out."""


def page(name: str, items: Sequence[tuple[int, Mapping[str, Any]]], offset: int) -> dict[str, Any]:
    """``{name: […], "more": N, "next_offset": K}``: as many items from ``offset`` on as fit, one at
    least. ``items`` are (tokens, what is answered); the last page has neither ``more`` nor
    ``next_offset``."""
    taken: list[Mapping[str, Any]] = []
    spent = 0
    for tokens, item in items[max(0, offset) :]:
        if taken and spent + tokens > ANSWER_TOKENS:
            break
        taken.append(item)
        spent += tokens
    end = max(0, offset) + len(taken)
    more = max(0, len(items) - end)
    return {name: taken, **({"more": more, "next_offset": end} if more else {})}


def readable(text: str) -> str:
    """A text as an answer holds it."""
    return clipped(text, ONE_TEXT)

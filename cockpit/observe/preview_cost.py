"""What an item would cost, before anything of it is read into the store. Source: RFC-09, §Orient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cockpit.observe.project_snapshot import Ground
from cockpit.observe.scope_items import ScopeItem
from cockpit.store.context.facts import UTILITY_MAX, Fact


@dataclass(frozen=True, slots=True)
class Preview:
    """One item of a request, estimated.

    ``tokens`` is an estimate at the item's level, ``band`` where its facts land, ``refused`` the
    reason why it cannot be read (empty: it can), ``note`` what a person should know.
    """

    item: ScopeItem
    tokens: int
    band: str
    refused: str = ""
    note: str = ""


class Source(Protocol):
    """One kind of scope item: estimates it, and reads it."""

    async def preview(self, item: ScopeItem, ground: Ground) -> Preview:
        """Estimate without storing anything. Raises ``CockpitError`` when it cannot be read."""
        ...

    async def fetch(self, item: ScopeItem, ground: Ground) -> list[Fact]:
        """Read. Raises ``CockpitError`` with words for a person."""
        ...


BANDS = {"tree": "exploration", "log": "exploration"}
"""Bands of sources other than ``situational``."""

_UTILITY = {
    "pr": 900_000,
    "diff": 850_000,
    "file": 800_000,
    "issue": 700_000,
    "symbol": 700_000,
    "search": 600_000,
    "log": 400_000,
    "tree": 350_000,
}

OUTLINE_TOKENS = 300
REFERENCE_TOKENS = 25


def band(kind: str) -> str:
    """The band in which facts of this kind land."""
    return BANDS.get(kind, "situational")


def utility(kind: str) -> int:
    """The utility that facts of this kind begin with, 0 to 1,000,000."""
    return min(_UTILITY[kind], UTILITY_MAX)


def estimated(item: ScopeItem, full: int, *, note: str = "") -> Preview:
    """A preview at the item's level, from an estimate of its full text."""
    tokens = {
        "full": full,
        "outline": min(full, OUTLINE_TOKENS + full // 12),
        "reference": min(full, REFERENCE_TOKENS),
    }[item.level]
    return Preview(item, tokens, band(item.kind), note=note)


def joined(names: Sequence[str], most: int = 3) -> str:
    """Some names, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def shown_path(path: str) -> str:
    """A path on one line of a listing: as it is, or escaped when it holds control characters."""
    return path if path.isprintable() else ascii(path)[1:-1]

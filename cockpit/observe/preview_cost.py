"""The estimated cost of a scope item, before anything of it is stored. See ``docs/reference/loop.md``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.scope_items import ScopeItem
from cockpit.store.context.facts import UTILITY_MAX, Fact
from cockpit.store.context.observation_jobs import select_last_size


class Preview(Struct, frozen=True):
    """The estimate of one item of a request.

    ``tokens`` is estimated at the item's level (None: nobody knows before it is read), ``band`` is where
    its facts go, ``refused`` is why it cannot be read (empty: it can), ``note`` is for the user who decides.
    """

    item: ScopeItem
    tokens: int | None
    band: str
    refused: str = ""
    note: str = ""


class Source(Protocol):
    """One kind of scope item: estimates it, and reads it."""

    async def preview(self, item: ScopeItem, ground: ProjectSnapshot) -> Preview:
        """Estimate the item from what this machine has; store nothing, send nothing.

        Raises ``CockpitError`` when it cannot be read.
        """
        ...

    async def fetch(self, item: ScopeItem, ground: ProjectSnapshot) -> list[Fact]:
        """Read the item into facts. Raises ``CockpitError`` with a message for people."""
        ...


BANDS = {
    "tree": "exploration",
    "log": "exploration",
    "handoff": "exploration",
    "note": "exploration",
    "docs": "exploration",
    "knowledge": "exploration",
    "wip": "objectives",
    "skill": "capabilities",
}
"""Bands of sources other than ``situational``."""

_UTILITY = {
    "pr": 900_000,
    "diff": 850_000,
    "file": 800_000,
    "issue": 700_000,
    "gh": 700_000,
    "symbol": 700_000,
    "search": 600_000,
    "log": 400_000,
    "tree": 350_000,
    "receipt": 800_000,
    "handoff": 700_000,
    "wip": 800_000,
    "note": 500_000,
    "docs": 500_000,
    "knowledge": 500_000,
    "skill": 800_000,
}

OUTLINE_TOKENS = 300
REFERENCE_TOKENS = 25


def band_for(kind: str) -> str:
    """Return the band of facts of this kind."""
    return BANDS.get(kind, "situational")


def initial_utility(kind: str) -> int:
    """Return the utility that facts of this kind start with, 0 to 1,000,000."""
    return min(_UTILITY[kind], UTILITY_MAX)


def estimate_preview(item: ScopeItem, full: int, *, note: str = "") -> Preview:
    """Estimate an item at its level from the estimated tokens of its full text."""
    return Preview(item, estimate_level(item.level, full), band_for(item.kind), note=note)


def estimate_level(level: str, full: int) -> int:
    """Estimate the tokens at a level of detail from those of the full text."""
    return {
        "full": full,
        "outline": min(full, OUTLINE_TOKENS + full // 12),
        "reference": min(full, REFERENCE_TOKENS),
    }[level]


async def estimate_remote(item: ScopeItem, ground: ProjectSnapshot) -> Preview:
    """Estimate an item that another machine has: as large as the session read it last, else unknown.

    Asking there for its size would be reading it before you approve that.
    """
    tokens = None
    if (records := ground.records) is not None:
        tokens = await records.store.read(
            lambda connection: select_last_size(connection, records.session_id, str(item))
        )
    note = "its size when this session last read it"
    if tokens is None:
        note = "size unknown: GitHub is asked only after you approve"
    return Preview(item, tokens, band_for(item.kind), note=note)


def sum_tokens(items: Iterable[Mapping[str, Any]]) -> int:
    """Add the known sizes of a request's items that can be read."""
    return sum(item.get("tokens") or 0 for item in items if not item.get("refused"))


def join_names(names: Sequence[str], most: int = 3) -> str:
    """Join the first ``most`` names, and count the rest."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def printable_path(path: str) -> str:
    """Return a path for one line of a listing; escape it if it contains control characters."""
    return path if path.isprintable() else ascii(path)[1:-1]

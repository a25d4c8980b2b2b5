"""The estimated cost of a scope item, before anything of it is stored. See ``docs/reference/loop.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.rendered_cost import sum_costs
from cockpit.observe.scope_items import ScopeItem
from cockpit.store.context.facts import UTILITY_MAX, Fact
from cockpit.store.context.observation_jobs import select_last_size


class Preview(Struct, frozen=True):
    """The estimate of one item of a request.

    ``tokens`` is what a packet spends on its facts, with what is written around them (None: unknown before it
    is read), ``band`` where its facts go, ``refused`` why it cannot be read (empty: it can), ``note`` is
    for the user who decides.
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

SAMPLE = 64
"""Of more parts than this, an estimate measures a sample: at most twice as many."""


def band_for(kind: str) -> str:
    """Return the band of facts of this kind."""
    return BANDS.get(kind, "situational")


def initial_utility(kind: str) -> int:
    """Return the utility that facts of this kind start with, 0 to 1,000,000."""
    return min(_UTILITY[kind], UTILITY_MAX)


def preview_facts(item: ScopeItem, facts: Iterable[Fact], *, note: str = "") -> Preview:
    """Estimate an item by its facts: what a packet spends on them."""
    return Preview(item, sum_costs(facts), band_for(item.kind), note=note)


def estimate_sum(sizes: Sequence[int], cost_at: Callable[[int], int]) -> int:
    """Add the costs of all places; of more than :data:`SAMPLE`, those of a sample that stands for all."""
    return sum(times * cost_at(place) for place, times in choose_sample(sizes))


def choose_sample(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield places, and for how many places of about its size each stands.

    Sorted by size, the places are cut into runs of about equal weight, of which each gives its middle.
    """
    places = sorted(range(len(sizes)), key=sizes.__getitem__)
    # The mean, so that many small parts weigh as much as few large ones.
    mean = 1 + sum(sizes) // max(1, len(sizes))
    share = 0 if len(sizes) <= SAMPLE else 2 * mean * len(sizes) // SAMPLE
    weight = start = 0
    for at, place in enumerate(places):
        more = sizes[place] + mean
        if at > start and weight + more > share:
            yield places[(start + at) // 2], at - start
            start, weight = at, 0
        weight += more
    if places:
        yield places[(start + len(places)) // 2], len(places) - start


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

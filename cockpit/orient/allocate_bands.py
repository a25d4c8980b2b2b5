"""Allocation of the token budget to bands: a fractional knapsack, as if facts could be cut anywhere.

Floors are reserved, then targets are filled, then ceilings; within a stage the bands compete by worth
per token. The limits nest (floor in target in ceiling in total), so the greedy order is optimal: no
other allocation has more value under the same rules. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cockpit.orient.fact_columns import Ints


class BandLimits(Struct, frozen=True):
    """The limits in tokens; arrays have one item per band. ``pinned`` is used before all else."""

    total: int
    floor: Ints
    target: Ints
    ceiling: Ints
    pinned: Ints

    @property
    def reserved(self) -> Ints:
        """Tokens that each band has whatever the others demand."""
        return np.maximum(self.floor, self.pinned)

    @property
    def shared(self) -> int:
        """Tokens that the bands compete for."""
        return self.total - int(self.reserved.sum())


class BandAllocation(Struct, frozen=True):
    """Per band: ``room`` in tokens for facts that are not pinned, and ``bound``, its worth × tokens."""

    room: Ints
    bound: Ints


def allocate_bands(band: Ints, tokens: Ints, worth: Ints, limits: BandLimits) -> BandAllocation:
    """Allocate the budget to the bands. ``band``, ``tokens`` and ``worth`` list the facts, best first."""
    start = np.empty(len(band), np.int64)
    members = [np.flatnonzero(band == code) for code in range(len(limits.floor))]
    for code, at in enumerate(members):
        running = np.cumsum(tokens[at])
        start[at] = running - tokens[at] + limits.pinned[code]
    # A fact that starts above its band's ceiling gets nothing: only a few thousand facts remain.
    near = np.flatnonzero(start < np.maximum(limits.ceiling, limits.floor)[band])
    of, begin, worth = band[near], start[near], worth[near]
    end = begin + tokens[near]
    shared = limits.shared
    lower = limits.reserved
    allocated = np.maximum(np.minimum(end, limits.floor[of]) - begin, 0)
    for upper in (limits.target, limits.ceiling):
        upper = np.maximum(upper, lower)
        demand = np.maximum(np.minimum(end, upper[of]) - np.maximum(begin, lower[of]), 0)
        granted = np.clip(shared - (np.cumsum(demand) - demand), 0, demand)
        shared -= int(granted.sum())
        allocated = allocated + granted
        lower = upper
    value = worth * allocated
    mine = [of == code for code in range(len(members))]
    return BandAllocation(
        np.array([allocated[at].sum() for at in mine], np.int64),
        np.array([value[at].sum() for at in mine], np.int64),
    )

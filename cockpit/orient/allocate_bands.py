"""How much room each band gets, as if facts could be cut at any token.

Floors are reserved, targets come next, ceilings last; within a stage the bands compete by worth per
token. The limits nest (floor in target in ceiling in total), so taking the best first is exact: no
other split has more value under the same rules. Source: RFC-003 §9.3, §10.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cockpit.orient.fact_columns import Ints


@dataclass(frozen=True, slots=True)
class BandLimits:
    """What binds, in tokens; arrays have one item a band. ``pinned`` is used before all else."""

    total: int
    floor: Ints
    target: Ints
    ceiling: Ints
    pinned: Ints

    @property
    def reserved(self) -> Ints:
        """What each band holds whatever the others want."""
        return np.maximum(self.floor, self.pinned)

    @property
    def shared(self) -> int:
        """What the bands compete for."""
        return self.total - int(self.reserved.sum())


@dataclass(frozen=True, slots=True)
class BandAllocation:
    """By band: ``room`` in tokens for what is not pinned, and ``bound``, worth × tokens of that room."""

    room: Ints
    bound: Ints


def allocate_bands(band: Ints, tokens: Ints, worth: Ints, limits: BandLimits) -> BandAllocation:
    """Split the room between bands; the facts come best first. Pure."""
    start = np.empty(len(band), np.int64)
    members = [np.flatnonzero(band == code) for code in range(len(limits.floor))]
    for code, at in enumerate(members):
        running = np.cumsum(tokens[at])
        start[at] = running - tokens[at] + limits.pinned[code]
    # What begins above its band's ceiling gets nothing: a few thousand facts are left to look at.
    near = np.flatnonzero(start < np.maximum(limits.ceiling, limits.floor)[band])
    of, begin, worth = band[near], start[near], worth[near]
    end = begin + tokens[near]
    shared = limits.shared
    lower = limits.reserved
    taken = np.maximum(np.minimum(end, limits.floor[of]) - begin, 0)
    for upper in (limits.target, limits.ceiling):
        upper = np.maximum(upper, lower)
        wanted = np.maximum(np.minimum(end, upper[of]) - np.maximum(begin, lower[of]), 0)
        got = np.clip(shared - (np.cumsum(wanted) - wanted), 0, wanted)
        shared -= int(got.sum())
        taken = taken + got
        lower = upper
    value = worth * taken
    mine = [of == code for code in range(len(members))]
    return BandAllocation(
        np.array([taken[at].sum() for at in mine], np.int64),
        np.array([value[at].sum() for at in mine], np.int64),
    )

"""Greedy filling of a band: best fact first, each at the fullest detail level that fits.

Facts are processed in chunks: a chunk that fits is taken whole, and a chunk of which nothing fits is
skipped, so that exact work happens only near the end of the room.
See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cockpit.orient.allocate_bands import BandLimits
from cockpit.orient.fact_columns import NEVER, Ints

FULL = 0
OUTLINE = 1
DROPPED = -1
_CHUNK = 512


class LevelTokens(Struct, frozen=True):
    """Tokens of ``n`` facts, best first: 3 × n by level, and the smallest of each fact."""

    tokens: Ints
    smallest: Ints

    @classmethod
    def of(cls, full: Ints, outline: Ints, reference: Ints) -> LevelTokens:
        smallest = np.minimum(np.minimum(full, outline), reference)
        return cls(np.stack((full, outline, reference)), smallest)

    def joined(self, more: LevelTokens) -> LevelTokens:
        """These facts and ``more`` behind them."""
        return LevelTokens(
            np.concatenate((self.tokens, more.tokens), axis=1),
            np.concatenate((self.smallest, more.smallest)),
        )

    def at(self, places: Ints, chosen: Ints) -> Ints:
        """Tokens of the chosen level of the facts at ``places``; 0 for a dropped one."""
        return np.where(chosen == DROPPED, 0, self.tokens[np.maximum(chosen, FULL), places])


def fill_greedily(levels: LevelTokens, places: Ints, room: int) -> Ints:
    """Choose the level (0, 1, 2, or -1 for dropped) of the facts at ``places``, best first, within ``room``
    tokens."""
    chosen = np.full(len(places), DROPPED, np.int64)
    smallest = levels.smallest[places]
    least = np.minimum.accumulate(smallest[::-1])[::-1]
    for start in range(0, len(places), _CHUNK):
        if room < least[start]:
            break
        near = start + np.flatnonzero(smallest[start : start + _CHUNK] <= room)
        sizes = levels.tokens[:, places[near]]
        level = (sizes <= room).argmax(axis=0)
        tokens = sizes[level, np.arange(len(near))]
        running = np.cumsum(tokens)
        run = int(np.searchsorted(running, room, side="right"))
        chosen[near[:run]] = level[:run]
        room -= int(running[run - 1]) if run else 0
        rest = run + np.flatnonzero(smallest[near[run:]] <= room)
        for place, fuller in zip(near[rest].tolist(), sizes[:, rest].T.tolist(), strict=True):
            for level_of, size in enumerate(fuller):
                if size <= room:
                    chosen[place] = level_of
                    room -= size
                    break
    return chosen


def spend_leftover(
    band: Ints, levels: LevelTokens, chosen: Ints, used: list[int], limits: BandLimits
) -> None:
    """Spend leftover tokens: add dropped facts, and raise shortened ones to fuller levels.

    ``chosen`` and ``used`` (tokens by band, pinned included) are changed in place. A band may use
    its own floor, its ceiling, and what no other band's floor needs.
    """
    floor, ceiling = limits.floor.tolist(), limits.ceiling.tolist()
    spare = limits.total - sum(max(now, low) for now, low in zip(used, floor, strict=True))

    def free(code: int) -> int:
        own = max(floor[code] - used[code], 0) + spare
        return int(min(own, ceiling[code] - used[code]))

    step = levels.smallest.copy()
    short = np.flatnonzero(chosen > FULL)
    # From reference the next is outline, or full where there is none; from outline it is full.
    held = levels.tokens[chosen[short], short]
    outline = levels.tokens[1, short]
    following = np.where((chosen[short] == 2) & (outline < NEVER), outline, levels.tokens[0, short])
    step[short] = following - held
    for start in range(0, len(chosen), _CHUNK):
        part = slice(start, start + _CHUNK)
        room_now = np.array([free(code) for code in range(len(floor))], np.int64)
        near = (chosen[part] != FULL) & (step[part] <= room_now[band[part]])
        for place in (start + np.flatnonzero(near)).tolist():
            code = int(band[place])
            before = int(chosen[place])
            tokens = levels.tokens[:, place].tolist()
            holds = tokens[before] if before != DROPPED else 0
            room = free(code) + holds
            for level in range(before if before != DROPPED else len(tokens)):
                if tokens[level] <= room:
                    now = used[code] + tokens[level] - holds
                    spare -= max(now, floor[code]) - max(used[code], floor[code])
                    used[code] = now
                    chosen[place] = level
                    break

"""A 0/1 knapsack at the break point of a band: which whole facts fill the end of its room best.

Greedy filling is good while facts are small beside the room. Facts of thousands of tokens leave holes
or fill them with facts of little worth. There, the facts around the break point (where the room ends)
and around the end of the first capped source type's share are chosen together by dynamic programming,
in time linear in facts × room.
See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cockpit.orient.fact_columns import Ints
from cockpit.orient.greedy_fill import DROPPED, FULL, LevelTokens, fill_greedily

_ENOUGH = 512
"""A greedy filling that misses less than one part in this many of the bound is accepted: it is the
cheapest, and changes least from wave to wave."""

_BEFORE = 6
_AFTER = 24
_CELLS = 2_048


class RankedFacts(Struct, frozen=True):
    """Facts by tier, best first in each. ``rank`` is their order by worth whatever their tier,
    ``kind`` an equality code of their source type."""

    levels: LevelTokens
    tier: Ints
    rank: Ints
    worth: Ints
    kind: Ints

    def value(self, places: Ints, chosen: Ints) -> int:
        """Worth × tokens of the facts at ``places``, each at its chosen level."""
        return int((self.worth[places] * self.levels.at(places, chosen)).sum())


def fill_with_knapsack(
    ranked: RankedFacts, places: Ints, room: int, attainable: int, cap: int
) -> Ints:
    """The level (0, 1, 2 or -1) of the facts at ``places``, those of one band, within ``room`` tokens.

    Like :func:`~cockpit.orient.greedy_fill.fill_greedily`, but around the edge of the room where that leaves
    much of what is ``attainable`` (worth × tokens). A source type may hold ``cap`` tokens, or its best
    fact, before all others have come. Pure.
    """
    chosen = fill_greedily(ranked.levels, places, room)
    value = ranked.value(places, chosen)
    if (attainable - value) * _ENOUGH <= attainable:
        return chosen
    crowd, others = _split_capped_type(ranked, places)
    full = ranked.levels.tokens[FULL]
    most = min(room, max(cap, int(full[crowd[0]]))) if len(crowd) else 0
    crowd_held, crowd_core = _break_window(full[crowd], most)
    rest = room - min(most, int(full[crowd].sum()))
    held, core = _break_window(full[others], rest)
    room_there = room - int(full[crowd[:crowd_held]].sum()) - int(full[others[:held]].sum())
    share = min(most - int(full[crowd[:crowd_held]].sum()), room_there)
    picked = _solve(ranked, crowd[crowd_core], others[core], share, room_there)
    levels = np.full(len(full), DROPPED, np.int64)
    levels[crowd[:crowd_held]] = FULL
    levels[others[:held]] = FULL
    levels[np.concatenate((crowd[crowd_core], others[core]))] = picked
    behind = places[levels[places] == DROPPED]
    remaining = room - int(ranked.levels.at(places, levels[places]).sum())
    levels[behind] = fill_greedily(ranked.levels, behind, remaining)
    again = levels[places]
    return again if ranked.value(places, again) > value else chosen


def _split_capped_type(ranked: RankedFacts, places: Ints) -> tuple[Ints, Ints]:
    """The facts of the type that a cap holds back first, and those of all others that none holds
    back; both best first."""
    tier = ranked.tier[places]
    waiting = places[tier == 1]
    if not len(waiting):
        return waiting, places[tier == 0]
    kind = ranked.kind[waiting[0]]
    mine = ranked.kind[places] == kind
    crowd = places[mine & (tier < 2)]
    return crowd[np.argsort(ranked.rank[crowd])], places[~mine & (tier == 0)]


def _break_window(sizes: Ints, room: int) -> tuple[int, slice]:
    """How many facts surely fit (the first ones), and which come after them around the room's end."""
    edge = int(np.searchsorted(np.cumsum(sizes), room, side="right"))
    held = max(edge - _BEFORE, 0)
    return held, slice(held, edge + _AFTER)


def _solve(ranked: RankedFacts, crowd: Ints, others: Ints, share: int, room: int) -> Ints:
    """The levels of a few facts that are worth most within ``room``, ``crowd`` within ``share``.

    The room is counted in at most :data:`_CELLS` cells, a begun cell as a whole one, so that what is
    chosen always fits.
    """
    cell = max(-(-room // _CELLS), 1)
    sides = [
        _KnapsackTable.of(ranked, crowd, share // cell, cell),
        _KnapsackTable.of(ranked, others, room // cell, cell),
    ]
    first, second = sides
    together = first.best + second.best[::-1][: len(first.best)]
    at = int(together.argmax())
    return np.concatenate((first.chosen(at), second.chosen(room // cell - at)))


class _KnapsackTable(Struct, frozen=True):
    """``best[c]`` is the most worth that facts have in ``c`` cells; ``picks`` (facts × cells) the
    level of each in the best choice among it and those before; ``needed`` is cells by level and fact.
    """

    best: Ints
    picks: NDArray[np.int8]
    needed: Ints

    @classmethod
    def of(cls, ranked: RankedFacts, places: Ints, cells: int, cell: int) -> _KnapsackTable:
        sizes = ranked.levels.tokens[:, places]
        needed = -(-sizes // cell)
        gains = np.where(needed <= cells, sizes, 0) * ranked.worth[places]
        best = np.zeros(cells + 1, np.int64)
        picks = np.full((len(places), cells + 1), DROPPED, np.int8)
        for fact in range(len(places)):
            before = best.copy()
            for level in range(len(sizes)):
                need = int(needed[level, fact])
                if need > cells:
                    continue
                with_it = before[: cells + 1 - need] + gains[level, fact]
                # Of equals the first stays: nothing is taken that adds nothing.
                np.putmask(picks[fact, need:], with_it > best[need:], level)
                np.maximum(best[need:], with_it, out=best[need:])
        return cls(best, picks, needed)

    def chosen(self, cells: int) -> Ints:
        """The level of each fact in the best choice for ``cells``."""
        levels = np.full(len(self.picks), DROPPED, np.int64)
        for fact in range(len(levels) - 1, -1, -1):
            level = int(self.picks[fact, cells])
            if level != DROPPED:
                levels[fact] = level
                cells -= int(self.needed[level, fact])
        return levels

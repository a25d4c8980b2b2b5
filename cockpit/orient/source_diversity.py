"""Source diversity: no source crowds a band while others wait, and no fact is repeated.

A cap wastes no room: facts over it are tried after all others, and taken if room remains. Its tiers are
those of algorithm ``bands/1``. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import numpy as np

from cockpit.orient.fact_columns import NEVER, FactColumns, Flags, Ints
from cockpit.orient.radix_sort import radix_order

REF_SHARE = 3
TYPE_SHARE = 4
"""One source reference may use a third of its band's target, one source type three quarters."""


def find_repeats(columns: FactColumns) -> Flags:
    """Live facts that another repeats: one id twice, or, unpinned, a place that was observed again.

    A place is (source type, source reference, dedupe key); a fact without a key has none.
    """
    repeats = columns.repeated & ~columns.superseded
    keyed = np.flatnonzero(~columns.superseded & (columns.dedupe_key != columns.no_key))
    if not len(keyed) or np.bincount(columns.dedupe_key[keyed]).max() < 2:
        return repeats
    place = columns.dedupe_key * (columns.source_ref.max() + 1) + columns.source_ref
    place = place * (columns.source_type.max() + 1) + columns.source_type
    order = keyed[radix_order(place[keyed])]
    same = place[order[1:]] == place[order[:-1]]
    # Facts of one wave are parts of one look, and stand beside each other.
    last = np.flatnonzero(np.append(~same, True))
    newest = np.repeat(columns.ordinal[order[last]], np.diff(last, prepend=-1))
    again = order[columns.ordinal[order] < newest]
    repeats[again[~columns.pinned[again]]] = True
    return repeats


def assign_tiers(columns: FactColumns, ranked: Ints, targets: Ints) -> Ints:
    """For each of the ``ranked`` facts (indices, best first), in their order: 0 where no cap holds
    it back, 1 where its source type's does, 2 where its source reference's does.

    A tier waits for all of the one before. A fact larger than its cap waits without using it up.
    """
    band = columns.band[ranked]
    tokens = columns.full[ranked]
    by_ref = _over(columns.source_ref[ranked], band, tokens, targets // REF_SHARE)
    rest = np.where(by_ref, 0, tokens)
    share = targets * (TYPE_SHARE - 1) // TYPE_SHARE
    by_type = _over(columns.source_type[ranked], band, rest, share)
    return np.where(by_ref, 2, by_type.astype(np.int64))


def _over(source: Ints, band: Ints, tokens: Ints, caps: Ints) -> Flags:
    """True where a fact is larger than its source's cap, or comes after the cap is used up."""
    cap = caps[band]
    over = tokens > cap
    counted = np.where(over, 0, tokens)
    # Sums of whole tokens far below 2**53 are exact in the floats that bincount uses.
    held = np.bincount(source, weights=counted, minlength=1)
    present = np.bincount(band, minlength=len(caps)) > 0
    crowded = np.flatnonzero((held > caps[present].min(initial=NEVER))[source])
    if not len(crowded):
        return over
    group = source[crowded] * len(caps) + band[crowded]
    sorting = radix_order(group)
    order, group = crowded[sorting], group[sorting]
    running = np.cumsum(counted[order])
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    before = np.repeat((running - counted[order])[first], np.diff(np.append(first, len(order))))
    over[order] |= running - before > cap[order]
    return over

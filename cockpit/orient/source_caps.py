"""Caps on a source's share of a band: fractional for the bound, in whole facts for the packet.

As in :mod:`~cockpit.orient.source_diversity`, a source reference holds a third of its
band's target and a source
type three quarters, and what is over waits behind everything else. But a source's best fact never
waits, however large it is, and a fact that does not fit lets smaller ones of its source pass.
See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cockpit.orient.fact_columns import NEVER, FactColumns, Flags, Ints
from cockpit.orient.radix_sort import radix_order
from cockpit.orient.source_diversity import REF_SHARE, TYPE_SHARE

_PASSES = 4
"""How often a fact of a source may be passed over for smaller ones; then its rest waits."""


class CapSplit(Struct, frozen=True):
    """Of facts that come best first: ``parts`` (3 × n) is the tokens of each that no cap holds back,
    that its type's does and that its reference's does; their sum is the fact. ``tier`` says the same
    of whole facts: 0, 1 or 2. A tier waits for all of the one before."""

    parts: Ints
    tier: Ints


def type_caps(targets: Ints) -> Ints:
    """Tokens that one source type may hold, by band."""
    return targets * (TYPE_SHARE - 1) // TYPE_SHARE


def split_by_caps(columns: FactColumns, ranked: Ints, targets: Ints) -> CapSplit:
    """The shares of the ``ranked`` facts (indices, best first)."""
    band, tokens = columns.band[ranked], columns.full[ranked]
    by_ref = _Groups.of(columns.source_ref[ranked], band, tokens, targets // REF_SHARE)
    in_ref = by_ref.within(tokens)
    waits = by_ref.waiting(tokens)
    kind, caps = columns.source_type[ranked], type_caps(targets)
    free = _Groups.of(kind, band, in_ref, caps).within(in_ref)
    fits = np.where(waits, 0, tokens)
    tier = np.where(_Groups.of(kind, band, fits, caps).waiting(fits), 1, 0)
    tier[waits] = 2
    return CapSplit(np.stack((free, in_ref - free, tokens - in_ref)), tier)


class _Groups(Struct, frozen=True):
    """Facts by source and band: ``order`` has the members of each group side by side, best first.

    ``first`` is where in ``order`` each group begins, ``size`` how many it has, ``share`` how many
    tokens it may hold (by place in ``order``): its source's cap, or its best fact where that is more.
    """

    order: Ints
    first: Ints
    size: Ints
    share: Ints

    @classmethod
    def of(cls, source: Ints, band: Ints, tokens: Ints, caps: Ints) -> _Groups:
        """The groups of sources that may be over a cap at all; facts without tokens do not count."""
        # Sums of whole tokens far below 2**53 are exact in the floats that bincount uses.
        held = np.bincount(source, weights=tokens, minlength=1)
        present = np.bincount(band, minlength=len(caps)) > 0
        at = np.flatnonzero((held > caps[present].min(initial=NEVER))[source] & (tokens > 0))
        group = source[at] * len(caps) + band[at]
        sorting = radix_order(group)
        order, group = at[sorting], group[sorting]
        first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))[: len(order)]
        size = np.diff(np.append(first, len(order)))
        share = np.maximum(caps[band[order[first]]], tokens[order[first]])
        return cls(order, first, size, np.repeat(share, size))

    def before(self, counted: Ints) -> Ints:
        """The tokens of the better facts of each one's group; ``counted`` is by place in ``order``."""
        ahead = np.cumsum(counted) - counted
        return ahead - np.repeat(ahead[self.first], self.size)

    def within(self, tokens: Ints) -> Ints:
        """What of each fact its group's share has room for, as if it could be cut anywhere."""
        sizes = tokens[self.order]
        parts = tokens.copy()
        parts[self.order] = np.clip(self.share - self.before(sizes), 0, sizes)
        return parts

    def waiting(self, tokens: Ints) -> Flags:
        """The whole facts that their group's share has no room for."""
        waits = np.zeros(len(tokens), np.bool_)
        sizes = tokens[self.order]
        out = sizes > self.share
        for _ in range(_PASSES):
            counted = np.where(out, 0, sizes)
            over = ~out & (self.before(counted) + counted > self.share)
            if not over.any():
                break
            # The first that is over is out; those behind it are looked at again without it.
            places = np.flatnonzero(over)
            of = np.searchsorted(self.first, places, side="right")
            out[places[np.append(True, of[1:] != of[:-1])]] = True
        else:
            out |= over
        waits[self.order[out]] = True
        return waits

"""A stable radix sort of non-negative integers, in linear time."""

from __future__ import annotations

import numpy as np

from cockpit.orient.fact_columns import Ints

_DIGIT_BITS = 16
_FEW = 512
"""Keys for which one sort by comparing takes less time than several by counting."""


def radix_order(keys: Ints) -> Ints:
    """Return the indices that sort ``keys`` (none negative) ascending; equal keys keep their order.

    It sorts digit by digit: numpy sorts 16-bit numbers by counting, three times as fast.
    """
    if len(keys) < _FEW:
        return np.argsort(keys, kind="stable")
    order = np.arange(len(keys))
    for shift in range(0, int(keys.max(initial=0)).bit_length(), _DIGIT_BITS):
        digit = ((keys >> shift) & ((1 << _DIGIT_BITS) - 1)).astype(np.uint16)
        if digit.min() < digit.max():
            order = order[np.argsort(digit[order], kind="stable")]
    return order

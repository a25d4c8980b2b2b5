"""Weights as people write them, in whole grams."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

_WRITTEN = re.compile(r"\s*(\d+(?:[.,]\d+)?)\s*(kg|g)\s*\Z", re.IGNORECASE)
_GRAMS = {"g": 1, "kg": 1000}


class NotAWeight(ValueError):
    """The text is no weight."""


def grams(text: str) -> int:
    """``"1.5 kg"``, ``"1,5kg"`` and ``"1500 g"`` are all 1500.

    A part of a gram counts as a whole one. Raises NotAWeight, also for nothing at all.
    """
    match = _WRITTEN.match(text)
    if match is None:
        raise NotAWeight(f"{text!r} is no weight; write 800 g or 1.5 kg")
    number = Decimal(match[1].replace(",", ".")) * _GRAMS[match[2].lower()]
    whole = int(number.to_integral_value(rounding=ROUND_CEILING))
    if whole == 0:
        raise NotAWeight("a parcel weighs something")
    return whole


def shown(weight: int) -> str:
    """A weight for a label: grams below a kilogram, else kilograms with at most two places."""
    if weight < 1000:
        return f"{weight} g"
    text = f"{Decimal(weight) / 1000:.2f}".rstrip("0").rstrip(".")
    return f"{text} kg"

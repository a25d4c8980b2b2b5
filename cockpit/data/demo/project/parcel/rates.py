"""What a parcel costs: weight bands by zone, in cents. The table is the one in docs/rates.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Tuple

INSURED_PART = 100
"""One cent of insurance for every so many cents of value."""

FREE_INSURANCE = 5_000
"""Value in cents that is insured without a surcharge."""


class TooHeavy(ValueError):
    """No band takes this weight."""


@dataclass(frozen=True)
class Band:
    """Parcels up to ``limit`` grams, and their price in cents by zone."""

    limit: int
    prices: Mapping[str, int]


BANDS: Tuple[Band, ...] = (
    Band(1_000, {"home": 399, "near": 899, "far": 1_499}),
    Band(2_000, {"home": 549, "near": 1_199, "far": 2_299}),
    Band(5_000, {"home": 699, "near": 1_499, "far": 3_699}),
    Band(10_000, {"home": 999, "near": 1_999, "far": 5_499}),
    Band(20_000, {"home": 1_699, "near": 3_199, "far": 9_999}),
)


def band_for(weight: int) -> Band:
    """The band of a parcel of ``weight`` grams. Raises TooHeavy."""
    for band in BANDS:
        if weight < band.limit:
            return band
    most = BANDS[-1].limit // 1000
    raise TooHeavy(f"{weight} g is more than the {most} kg that a parcel may weigh")


def price(weight: int, zone: str, value: int = 0) -> int:
    """Cents for a parcel of ``weight`` grams to ``zone``, insured for ``value`` cents."""
    return band_for(weight).prices[zone] + insurance(value)


def insurance(value: int) -> int:
    """The surcharge for what is worth more than is insured anyway."""
    above = max(0, value - FREE_INSURANCE)
    return -(-above // INSURED_PART)

"""Addresses as customers type them into one box."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Tuple

_POSTCODES = {
    "AT": r"\d{4}",
    "DE": r"\d{5}",
    "FR": r"\d{5}",
    "GB": r"[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}",
    "NL": r"\d{4} ?[A-Z]{2}",
    "US": r"\d{5}(?:-\d{4})?",
}


class BadAddress(ValueError):
    """The address cannot be delivered to."""


@dataclass(frozen=True)
class Address:
    """Who and where. ``country`` is a two-letter code."""

    name: str
    street: Tuple[str, ...]
    postcode: str
    city: str
    country: str

    def lines(self) -> Tuple[str, ...]:
        """The lines of a label, the country last."""
        return (self.name, *self.street, f"{self.postcode} {self.city}", self.country)


def read(text: str) -> Address:
    """An address out of lines: name, street (one line or two), postcode and city, country.

    Raises BadAddress that says which line is wrong.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not 4 <= len(lines) <= 5:
        raise BadAddress(f"an address has 4 or 5 lines, this one has {len(lines)}")
    name, *street, place, country = lines
    code = country.upper()
    if not re.fullmatch("[A-Z]{2}", code):
        raise BadAddress(f"the last line is a country code, not {country!r}")
    pattern = _POSTCODES.get(code, r"[A-Z0-9][A-Z0-9 -]{1,9}?")
    match = re.fullmatch(rf"({pattern})\s+(\S.*)", place, re.IGNORECASE)
    if match is None:
        raise BadAddress(f"{place!r} does not begin with a postcode of {code}")
    return Address(name, tuple(street), match[1].upper(), match[2], code)

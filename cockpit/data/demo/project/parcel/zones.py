"""Which postage zone a country is in."""

from __future__ import annotations

HOME = "DE"

NEAR = frozenset(
    "AT BE BG CY CZ DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK".split()
)
"""The customs union: no declaration is needed."""


def zone(country: str) -> str:
    """``home``, ``near`` or ``far`` for a two-letter country code.

    Raises ValueError for anything else than two letters.
    """
    code = country.strip().upper()
    if len(code) != 2 or not code.isalpha():
        raise ValueError(f"{country!r} is no country code; write two letters, such as FR")
    if code == HOME:
        return "home"
    return "near" if code in NEAR else "far"


def needs_declaration(country: str) -> bool:
    """True when customs wants to know what is inside."""
    return zone(country) == "far"

"""What is sent."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Parcel:
    """One parcel: its number, its weight in grams and where it goes."""

    number: str
    grams: int
    depot: str

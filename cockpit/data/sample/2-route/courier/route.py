"""Which way a parcel goes, and how long that takes."""

from courier.parcel import Parcel
from courier.retry import backoff

HEAVY_GRAMS = 20_000


def route(parcel: Parcel) -> str:
    """``freight`` for heavy parcels, ``letter`` for light ones, ``parcel`` for the rest."""
    if parcel.grams > HEAVY_GRAMS:
        return "freight"
    return "letter" if parcel.grams <= 500 else "parcel"


def longest_wait(attempts: int) -> float:
    """Seconds that a parcel waits in all if every attempt but the last fails."""
    return sum(backoff(attempt) for attempt in range(1, attempts + 1))

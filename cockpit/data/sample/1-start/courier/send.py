"""Sending."""

from urllib.request import Request, urlopen

from courier.parcel import Parcel
from courier.retry import retry


def send(parcel: Parcel, depot_url: str) -> int:
    """Send a parcel; returns the depot's status. Raises ``GaveUp`` when the depot is not reached."""
    request = Request(f"{depot_url}/parcels/{parcel.number}", method="PUT")

    def attempt() -> int:
        with urlopen(request, timeout=10) as answer:
            return int(answer.status)

    return retry(attempt)

"""Asking the carrier where a parcel is."""

from __future__ import annotations

from typing import Callable, List
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import urlopen

from parcel.tracking import Event, latest, read_feed

Transport = Callable[[str], bytes]
"""An address in, what stands there out; raises what urllib raises."""


class UnknownParcel(LookupError):
    """The carrier has no parcel of that number."""


class CarrierDown(OSError):
    """The carrier does not answer."""


def fetch(url: str) -> bytes:
    """What stands at ``url``."""
    with urlopen(url, timeout=10) as answer:
        return answer.read()


class Client:
    """One carrier's tracking service at ``base``."""

    def __init__(self, base: str, transport: Transport = fetch) -> None:
        self._base = base.rstrip("/")
        self._transport = transport

    def events(self, number: str) -> List[Event]:
        """The scans of a parcel, oldest first.

        Raises UnknownParcel, CarrierDown, and BadFeed for an answer that makes no sense.
        """
        try:
            return read_feed(self._transport(self._url(number)))
        except HTTPError as error:
            if error.code == 404:
                raise UnknownParcel(f"there is no parcel {number}") from error
            raise CarrierDown(f"the carrier answers with {error.code}") from error
        except URLError as error:
            raise CarrierDown(f"the carrier cannot be reached: {error.reason}") from error

    def status(self, number: str) -> str:
        """Where a parcel is, in words. Raises what :meth:`events` raises."""
        newest = latest(self.events(number))
        return newest.words() if newest else "announced"

    def _url(self, number: str) -> str:
        return f"{self._base}/parcels/{quote(number, safe='')}"

"""What the carrier's feed says about a parcel."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import List, Optional, Sequence

WORDS = {
    "AN": "announced",
    "PU": "picked up",
    "HU": "at a hub",
    "OD": "out for delivery",
    "DL": "delivered",
    "RT": "on its way back",
}


class BadFeed(ValueError):
    """The carrier answered something that is no feed."""


@dataclass(frozen=True)
class Event:
    """One scan. ``at`` carries its time zone; ``code`` is the carrier's."""

    at: datetime
    code: str
    place: str

    def words(self) -> str:
        """``out for delivery, Leipzig``."""
        said = WORDS.get(self.code, f"code {self.code}")
        return f"{said}, {self.place}" if self.place else said


def read_feed(data: bytes) -> List[Event]:
    """The events of a feed, oldest first, whatever order they came in. Raises BadFeed."""
    try:
        found = [
            Event(datetime.fromisoformat(one["at"]), str(one["code"]), str(one.get("place", "")))
            for one in json.loads(data)["events"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise BadFeed(f"the carrier's answer cannot be read: {error}") from error
    if any(event.at.tzinfo is None for event in found):
        raise BadFeed("the carrier's answer has a time without a time zone")
    return sorted(found, key=lambda event: event.at)


def latest(events: Sequence[Event]) -> Optional[Event]:
    """The newest event, or None for a parcel that was only announced on paper."""
    return events[-1] if events else None

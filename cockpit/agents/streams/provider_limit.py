"""Limits of providers in the words of agents and servers: whether one was met, and when it ends.

See ``docs/reference/chains.md``, limits of providers.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from cockpit.core.errors import CockpitError

_MET = re.compile(
    r"(?:hit|reached) your [\w' -]{0,30}limit|out of (?:extra )?usage|usage limit reached"
    r"|\"status\"\s*:\s*\"rejected\"|\brate[_ ]limit|too many requests|overloaded"
    r"|\b(?:HTTP|status|error|API Error:?)\s*:?\s*\(?(?:401|429|529)\b"
    r"|invalid api key|oauth token has expired|please run /login",
    re.IGNORECASE,
)
_EPOCH = re.compile(r"(?:\"resetsAt\"\s*:\s*|limit reached\|)(\d{10})(?:\d{3})?\b")
_LEFT = re.compile(
    r"(?:try again|retry|resets) in\s+(?:(\d+)\s*d(?:ays?)?[ ,]*)?(?:(\d+)\s*h(?:ours?|rs?)?[ ,]*)?"
    r"(?:(\d+)\s*m(?:in(?:ute)?s?)?[ ,]*)?(?:(\d+)\s*s(?:ec(?:ond)?s?)?)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?:resets?|try again)(?: at| on)?\s+"
    r"(?:(?P<day>[A-Z][a-z]{2})[a-z]*\.?(?: (?P<date>\d{1,2}))?,?\s+(?:at )?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>[ap]m)?(?:\s*\((?P<zone>[\w/+-]{1,40})\))?",
    re.IGNORECASE,
)
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)
_LONGEST = timedelta(days=8)
"""A time that is farther away was misread."""


class ProviderLimited(CockpitError):
    """A provider takes no more for now; ``resets_at`` is None where it does not say until when."""

    code = "provider_limit"

    def __init__(self, message: str, resets_at: datetime | None) -> None:
        super().__init__(message)
        self.resets_at = resets_at


class ProviderLimit(Struct, frozen=True):
    """A limit that was met."""

    resets_at: datetime | None
    """When it ends, in UTC; None: it is not said."""


def read_limit(text: str, now: datetime) -> ProviderLimit | None:
    """Return the limit that an agent's or a server's words name; None where they name none.

    Times of day without a zone are those of this machine.
    """
    if _MET.search(text) is None:
        return None
    resets_at = _read_time(text, now)
    if resets_at is not None and not now - timedelta(hours=1) < resets_at < now + _LONGEST:
        resets_at = None
    return ProviderLimit(resets_at)


def _read_time(text: str, now: datetime) -> datetime | None:
    if match := _EPOCH.search(text):
        return datetime.fromtimestamp(int(match[1]), UTC)
    if (match := _LEFT.search(text)) and any(match.groups()):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return now + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    match = _CLOCK.search(text)
    return None if match is None else _next_time(match, now)


def _next_time(match: re.Match[str], now: datetime) -> datetime | None:
    """Return the next moment of the time of day, on the day that is named, if any."""
    try:
        zone = ZoneInfo(match["zone"]) if match["zone"] else None
        here = now.astimezone(zone)
        hour = int(match["hour"]) % (12 if match["half"] else 24)
        hour += 12 if (match["half"] or "").lower() == "pm" else 0
        at = here.replace(hour=hour, minute=int(match["minute"] or 0), second=0, microsecond=0)
        day, date = (match["day"] or "").lower(), match["date"]
        if day in _DAYS:
            at += timedelta(days=(_DAYS.index(day) - at.weekday()) % 7)
        elif day in _MONTHS and date:
            at = at.replace(month=_MONTHS.index(day) + 1, day=int(date))
        elif day:
            return None
        if at <= here:
            at = at.replace(year=at.year + 1) if date else at + timedelta(days=7 if day else 1)
    except (ValueError, ZoneInfoNotFoundError):
        return None
    return at.astimezone(UTC)

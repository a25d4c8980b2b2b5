"""Time, ids and randomness: the only source of them for everything above.

Modules take a :class:`Clock` and an :class:`Ids`, so that a wave can be replayed and tests never
sleep.
"""

from __future__ import annotations

import asyncio
import os
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_ALPHABET = "23456789abcdefghjkmnpqrstvwxyz"  # without 0/o, 1/i/l and u, which users mistype
_LETTERS = 8
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)


class Clock(Protocol):
    """Wall-clock time (aware, UTC), monotonic seconds, and sleeping."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    """New ids: ``new("p")`` gives ``p-`` and eight characters that are easy to type."""

    def new(self, prefix: str) -> str: ...


class SystemClock:
    """The machine's clock."""

    def __init__(self) -> None:
        self._second = (-1, "")
        """The second that :meth:`now_text` gave last, and its text."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def now_text(self) -> str:
        """Return this moment as :func:`format_time` does, in a third of the time."""
        seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        second, text = self._second
        if second != seconds:
            text = datetime.fromtimestamp(seconds, UTC).isoformat()[:19]
            self._second = seconds, text  # one value: several threads may do this
        return f"{text}.{nanoseconds // 1000:06}Z"

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class RandomIds:
    """Ids from the system's randomness."""

    def new(self, prefix: str) -> str:
        # Of 64 bits the remainder is even enough: no id is likelier than another by more than a millionth.
        number = int.from_bytes(os.urandom(8), "big") % (len(_ALPHABET) ** _LETTERS)
        number, low = divmod(number, len(_PAIRS) ** 2)
        first, second = divmod(number, len(_PAIRS))
        third, fourth = divmod(low, len(_PAIRS))
        return f"{prefix}-{_PAIRS[first]}{_PAIRS[second]}{_PAIRS[third]}{_PAIRS[fourth]}"


class FixedClock:
    """A clock for tests, snapshots and replay that moves by ``step_s`` seconds at each reading.

    ``sleep`` advances it and yields to the event loop once.
    """

    def __init__(self, start: datetime | None = None, step_s: float = 0.0) -> None:
        self._now = start or datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
        self._step = timedelta(seconds=step_s)
        self._monotonic = 0.0

    def now(self) -> datetime:
        self._now += self._step
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        await asyncio.sleep(0)


class CountingIds:
    """Ids in order, from ``p-00000001``: for tests, snapshots and replay."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def new(self, prefix: str) -> str:
        number = self._next.get(prefix, 0) + 1
        self._next[prefix] = number
        return f"{prefix}-{number:08d}"


def clock_time(moment: datetime, now: datetime) -> str:
    """Return a time as a user of this machine reads it: ``03:10``, or ``30 Nov 03:10`` on another day."""
    here = moment.astimezone()
    return f"{here:%H:%M}" if here.date() == now.astimezone().date() else f"{here:%d %b %H:%M}"


def format_time(moment: datetime) -> str:
    """Format a time as the store keeps and sorts it: ISO 8601 in UTC with microseconds, ``…Z``."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    text = moment.isoformat()
    if len(text) != _WITH_MICROSECONDS:  # none: it leaves out zeros
        text = moment.isoformat(timespec="microseconds")
    return text[:26] + "Z"


_WITH_MICROSECONDS = len("2026-01-01T12:00:00.000001+00:00")


def read_now(clock: Clock) -> str:
    """Return this moment of ``clock`` as the store keeps it."""
    return clock.now_text() if type(clock) is SystemClock else format_time(clock.now())


def milliseconds_between(start: str | None, end: str) -> int | None:
    """Return the milliseconds from one stored time to another, at least 0; None without a start."""
    if start is None:
        return None
    if start[:20] == end[:20]:  # in the same second
        return max(0, round((int(end[20:-1]) - int(start[20:-1])) / 1000))
    return max(0, round((parse_time(end) - parse_time(start)).total_seconds() * 1000))


def parse_time(text: str) -> datetime:
    """Reverse :func:`format_time`."""
    if not text.endswith("Z"):
        raise ValueError(f"{text!r} is not a time as the store keeps it")
    return datetime.fromisoformat(text)

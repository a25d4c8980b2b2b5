"""What workers of this machine may use in an hour: tasks, tokens, money.

All workers of a user on a machine share one record, which outlives them. A run counts its task when it is
taken up, and its tokens and money when it ends. Specified in ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

import msgspec

from cockpit.core.clock import Clock, format_time, parse_time
from cockpit.core.read_record import decode_json

HOUR = timedelta(hours=1)


class HourlyLimits(msgspec.Struct, frozen=True):
    """Limits of an hour; None means unlimited."""

    tasks: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    """US dollars. Tokens without a known price count as all of it."""


class Entry(msgspec.Struct, frozen=True):
    """What was used at one time."""

    at: str
    tasks: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    """None where tokens have no known price."""


class MachineQuota:
    """The record of what the machine used, and whether there is room for another task."""

    def __init__(self, path: Path, clock: Clock, limits: HourlyLimits) -> None:
        self._path = path
        self._clock = clock
        self._limits = limits

    def take(self) -> float:
        """Count a task that begins and return 0; or the seconds until there may be room for one."""
        if self._limits == HourlyLimits():
            return 0.0
        now = self._clock.now()
        with self._locked() as file:
            entries = _read(file, now)
            if wait_s := self._seconds_full(entries, now):
                return wait_s
            _write(file, [*entries, Entry(format_time(now), tasks=1)])
        return 0.0

    def give_back(self) -> None:
        """Take back the newest task that was counted: there was none to do."""
        self._change(_without_newest_task)

    def add(self, tokens: int, cost_usd: float | None) -> None:
        """Count what a run used; ``cost_usd`` None: its price is not known."""
        if self._limits != HourlyLimits() and tokens:
            entry = Entry(format_time(self._clock.now()), tokens=tokens, cost_usd=cost_usd)
            self._change(lambda entries: [*entries, entry])

    def _change(self, change: Callable[[list[Entry]], list[Entry]]) -> None:
        if self._limits == HourlyLimits():
            return
        with self._locked() as file:
            _write(file, change(_read(file, self._clock.now())))

    def _seconds_full(self, entries: list[Entry], now: datetime) -> float:
        """Return the seconds until enough of the oldest entries are an hour old; 0 where there is room."""
        for count in range(len(entries) + 1):
            if self._has_room(entries[count:]):
                if not count:
                    return 0.0
                free_at = parse_time(entries[count - 1].at) + HOUR
                return max(1.0, (free_at - now).total_seconds())
        return HOUR.total_seconds()  # a limit of 0: never

    def _has_room(self, entries: list[Entry]) -> bool:
        limits = self._limits
        if limits.tasks is not None and sum(each.tasks for each in entries) >= limits.tasks:
            return False
        if limits.tokens is not None and sum(each.tokens for each in entries) >= limits.tokens:
            return False
        if limits.cost_usd is None:
            return True
        costs = [each.cost_usd for each in entries]
        prices = [cost for cost in costs if cost is not None]
        return len(prices) == len(costs) and sum(prices) < limits.cost_usd

    @contextmanager
    def _locked(self) -> Iterator[IO[str]]:
        """Open the record; of all workers of the machine a single one has it at a time."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._path.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def _without_newest_task(entries: list[Entry]) -> list[Entry]:
    taken = [at for at, each in enumerate(entries) if each.tasks]
    return [each for at, each in enumerate(entries) if at != taken[-1]] if taken else entries


def _read(file: IO[str], now: datetime) -> list[Entry]:
    """Read the entries of the last hour, the oldest first; a line that a crash cut off is none."""
    file.seek(0)
    entries = []
    for line in file:
        with suppress(msgspec.DecodeError):
            entries.append(decode_json(line, Entry))
    since = format_time(now - HOUR)
    return sorted((each for each in entries if each.at > since), key=lambda each: each.at)


def _write(file: IO[str], entries: list[Entry]) -> None:
    file.seek(0)
    file.truncate()
    file.write("".join(f"{msgspec.json.encode(each).decode()}\n" for each in entries))

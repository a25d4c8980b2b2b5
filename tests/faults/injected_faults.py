"""Faults at chosen moments: before any SQL statement and before any effect of this process.

A *moment* is the instant before a call of SQLite or before an effect that leaves the process: a file that
is opened for writing, renamed, linked or removed, a folder that is created or removed, a program that is
started. What comes before one call is what comes after the call before it, so to die at each moment is to die
before and after every statement and every effect. :func:`install` counts them in a process that was forked
for one trial: hooks of the interpreter cannot be taken out again.
"""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Kind = Literal["kill", "FULL", "BUSY", "IOERR", "ENOSPC", "EACCES"]
SQL_ERRORS: dict[str, tuple[int, str]] = {
    "FULL": (sqlite3.SQLITE_FULL, "database or disk is full"),
    "BUSY": (sqlite3.SQLITE_BUSY, "database is locked"),
    "IOERR": (sqlite3.SQLITE_IOERR_WRITE, "disk I/O error"),
}
SYSTEM_ERRORS = {"ENOSPC": errno.ENOSPC, "EACCES": errno.EACCES}
_EFFECTS = {
    "os.rename": 0, "os.link": 0, "os.symlink": 1, "os.remove": 0, "os.mkdir": 0, "os.rmdir": 0,
    "os.truncate": 0,
}  # fmt: skip
"""Audit events of effects on files, with the argument that names the file."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the moment of number ``at``, counted from 1 among the moments that it can befall.

    ``kill`` befalls all, the errors of SQLite its calls, the errors of the system the effects.
    """

    kind: Kind
    at: int


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment of a run: ``sql`` or ``effect``, and what is about to happen."""

    kind: Literal["sql", "effect"]
    words: str


class Moments:
    """Counts the moments of this process, and lets ``fault`` happen at its own."""

    def __init__(self, fault: Fault | None, below: Path, tell: Callable[[Moment], None]) -> None:
        self._fault = fault
        self._below = str(below)
        self._tell = tell
        self._lock = threading.Lock()
        self._count = 0

    def sql(self, words: str) -> None:
        """Note a call of SQLite. Raises SQLite's error where that is the fault."""
        if self._happens(Moment("sql", words)):
            assert self._fault is not None
            code, message = SQL_ERRORS[self._fault.kind]
            error = sqlite3.OperationalError(message)
            error.sqlite_errorcode = code
            raise error

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an effect. Raises the system's error where that is the fault."""
        words = self._effect(event, arguments)
        if words and self._happens(Moment("effect", words)):
            assert self._fault is not None
            number = SYSTEM_ERRORS[self._fault.kind]
            raise OSError(number, os.strerror(number), words)

    def _happens(self, moment: Moment) -> bool:
        kind = self._fault.kind if self._fault else "kill"
        if moment.kind != ("sql" if kind in SQL_ERRORS else "effect") and kind != "kill":
            return False
        with self._lock:
            self._count += 1
            number = self._count
        self._tell(moment)
        if self._fault is None or number != self._fault.at:
            return False
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    def _effect(self, event: str, arguments: tuple[Any, ...]) -> str:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & _WRITING or not self._is_ours(path):
                return ""
            return f"open {Path(os.fsdecode(path)).name}"
        if event == "subprocess.Popen":
            return f"start {Path(str(arguments[0])).name}"
        if event in _EFFECTS:
            path = arguments[_EFFECTS[event]]
            return f"{event} {Path(os.fsdecode(path)).name}" if self._is_ours(path) else ""
        return ""

    def _is_ours(self, path: object) -> bool:
        """Tell whether a file is in the trial's folder; one that is named relative to a handle is."""
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        name = os.fsdecode(path)
        return name.startswith(self._below) or not name.startswith("/")


def install(fault: Fault | None, below: Path, tell: Callable[[Moment], None]) -> None:
    """Count this process's moments from now on, and let ``fault`` happen. There is no way back.

    Effects count when they are on files ``below``; ``tell`` is called with each moment that counts.
    """
    moments = Moments(fault, below, tell)

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            moments.sql(sql)
            return super().execute(sql, *arguments)

        def executemany(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            moments.sql(sql)
            return super().executemany(sql, *arguments)

        def executescript(self, sql: str) -> sqlite3.Cursor:
            moments.sql(sql)
            return super().executescript(sql)

    _connect_with(Connection)
    sys.addaudithook(moments.audit)


def die_after_commit(reached: Callable[[], bool]) -> None:
    """Kill this process after the first commit at which ``reached`` holds. There is no way back."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            cursor = super().execute(sql, *arguments)
            if sql == "COMMIT" and reached():
                os.kill(os.getpid(), signal.SIGKILL)
            return cursor

    _connect_with(Connection)


def _connect_with(factory: type[sqlite3.Connection]) -> None:
    connect = sqlite3.connect

    def connect_watched(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, **{**options, "factory": factory})

    sqlite3.connect = connect_watched  # type: ignore[assignment]

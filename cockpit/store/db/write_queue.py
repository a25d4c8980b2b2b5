"""A queue of the processes that want to write, in the order in which they came.

SQLite lets waiting writers sleep and try again: one that writes often gets the lock each time, and another
one waits for seconds. Here each writer takes the next number, and waits until the writer before it is done:
it holds a lock on its own byte of a file next to the database, which the kernel releases with the process,
however that ends. The queue only orders: SQLite's lock still decides. So a writer whose turn does not come,
or that has no such file, goes to SQLite's lock at once. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from pathlib import Path

SUFFIX = "-queue"
POLL_S = 0.0004
"""Seconds between two looks at the writer before this one, for each writer that comes first."""
LONGEST_POLL_S = 0.01
_COUNTS = struct.Struct("<QQ")
"""The number that was given last, and the number whose turn was last."""
_FLOCK = struct.Struct("hhqqi4x")
_MUTEX = 0
"""The byte that is locked while a number is taken."""
_LOCK_MUTEX = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _MUTEX, 1, 0)
_UNLOCK_MUTEX = _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, _MUTEX, 1, 0)
# Locks of an open file, not of a process: two stores in one process wait for each other, too.
_SET: int = getattr(fcntl, "F_OFD_SETLK", -1)
_GET: int = getattr(fcntl, "F_OFD_GETLK", -1)


class WriteQueue:
    """The queue of one database, for one connection. Every method works without the file, too."""

    def __init__(self, database: Path, patience_s: float) -> None:
        """``patience_s``: how long a writer waits for its turn, in seconds."""
        self._patience_s = patience_s
        self._ticket = 0
        self._file = -1 if _SET < 0 else _open(database.with_name(database.name + SUFFIX))

    def enter(self) -> None:
        """Wait for this writer's turn, at most as long as it has patience."""
        if self._file < 0:
            return
        until = time.monotonic() + self._patience_s
        try:
            before = self._take_number(until)
            if before is not None:
                self._await(before, until)
        except OSError:
            self.close()  # a file system without such locks: SQLite's lock is enough

    def leave(self) -> None:
        """Let the next writer go on."""
        if not self._ticket or self._file < 0:
            return
        ticket, self._ticket = self._ticket, 0
        try:
            os.pwrite(self._file, ticket.to_bytes(8, "little"), 8)
            self._set(ticket, fcntl.F_UNLCK)
        except OSError:
            self.close()

    def close(self) -> None:
        """Leave the queue and close its file."""
        file, self._file, self._ticket = self._file, -1, 0
        if file >= 0:
            os.close(file)

    def _take_number(self, until: float) -> int | None:
        """Take the next number; returns the one before it, or None for nobody to wait for.

        That is one who has left already, or the wait for the number was too long.
        """
        while not self._lock(_LOCK_MUTEX):
            if time.monotonic() > until:
                return None
            time.sleep(POLL_S)
        try:
            before, turn = self._read()
            self._ticket = before + 1
            os.pwrite(self._file, self._ticket.to_bytes(8, "little"), 0)
            self._set(self._ticket, fcntl.F_WRLCK)
        finally:
            self._lock(_UNLOCK_MUTEX)
        return None if turn == before else before

    def _await(self, before: int, until: float) -> None:
        while before and not self._is_free(before) and time.monotonic() < until:
            _, turn = self._read()
            time.sleep(min(max(self._ticket - turn - 1, 1) * POLL_S, LONGEST_POLL_S))

    def _read(self) -> tuple[int, int]:
        counts = os.pread(self._file, _COUNTS.size, 0)
        given, turn = _COUNTS.unpack(counts.ljust(_COUNTS.size, b"\0"))
        return given % (1 << 60), turn % (1 << 60)

    def _set(self, byte: int, kind: int) -> bool:
        """Lock or unlock a byte; returns False where another writer has it."""
        return self._lock(_FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0))

    def _lock(self, flock: bytes) -> bool:
        try:
            fcntl.fcntl(self._file, _SET, flock)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _is_free(self, byte: int) -> bool:
        query = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        answer: bytes = fcntl.fcntl(self._file, _GET, query)
        return bool(_FLOCK.unpack(answer)[0] == fcntl.F_UNLCK)


def _open(path: Path) -> int:
    """Open the queue's file, private to its owner; returns -1 where that is not possible."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return -1

"""Structured log lines: journal rows without their details, one JSON object a line.

Off by default. The file is private (0600) and appended to. Every line is a journal row, so the log contains
nothing that the journal does not, and secrets are masked in both.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from cockpit.core.canonical_json import canonical_json, text_digest
from cockpit.core.errors import CockpitError
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.journal.follow import follow
from cockpit.store.journal.journal import Row

_TURN_LOOK_S = 1.0
"""Seconds between two looks whether the process that writes the log has ended."""

FIELDS = (
    "trace_id",
    "wave_id",
    "packet_id",
    "profile_id",
    "profile_version",
    "actor",
    "action",
    "result",
    "latency_ms",
    "error_code",
)
"""The columns of a log line, beside ``at``, ``seq`` and ``session_id``."""


class LogUnwritable(CockpitError):
    """The log file cannot be written."""

    code = "log_unwritable"


def line(row: Row) -> str:
    """Return a row as a log line."""
    body = {name: getattr(row, name) for name in FIELDS}
    # A step that takes no time of its own is one transaction.
    body["latency_ms"] = row.latency_ms or 0
    return canonical_json({"at": row.at, "seq": row.seq, "session_id": row.session_id, **body})


class LogFile:
    """An open log."""

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600
            )
        except OSError as error:
            raise LogUnwritable(
                f"The log {path} cannot be written: {error.strerror or error}. "
                "Name another file: `[log] json`, or COCKPIT_LOG_JSON."
            ) from error

    def write(self, rows: Sequence[Row]) -> None:
        """Append rows, whole lines at a time; provisional fragments of text are left out."""
        text = "".join(f"{line(row)}\n" for row in rows if row.digest).encode("utf-8")
        while text:
            text = text[os.write(self._descriptor, text) :]

    def close(self) -> None:
        os.close(self._descriptor)


class Turn:
    """The right to write the rows of one store to one log: held by one writer at a time.

    The screen, a chain and its workers may log to the same file, and each row is written once. The lock's
    file has the last row that was written; the lock ends with its process.
    """

    def __init__(self, store: Store, path: Path) -> None:
        name = text_digest(str(path.absolute()))[:12]
        file = store.path.with_name(f"log-{name}.lock")
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)

    def take(self) -> bool:
        """Take the turn if no other writer has it."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def last_seq(self) -> int:
        """Return the last row that was written; 0 before the first."""
        text = os.pread(self._descriptor, 32, 0).decode("ascii", "replace")
        return int(text) if text.isdigit() else 0

    def store_seq(self, seq: int) -> None:
        """Store the last row that was written."""
        os.pwrite(self._descriptor, str(seq).encode("ascii"), 0)

    def give_back(self) -> None:
        """Let another writer have the turn."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._descriptor)


@asynccontextmanager
async def logged(
    store: Store, path: str | None, *, after: int | None = None
) -> AsyncIterator[None]:
    """Write every new row of the journal to the log at ``path``, in order, until the context ends.

    New are the rows with a seq greater than ``after``; None: from now on. Where several processes log the
    same store to the same file, one of them writes. A ``path`` of None logs nothing. Raises
    :class:`LogUnwritable`.
    """
    if path is None:
        yield
        return
    log = LogFile(Path(path))
    try:
        async with copied(store, Path(path), log.write, after=after):
            yield
    finally:
        log.close()


@asynccontextmanager
async def copied(
    store: Store, to: Path, write: Callable[[Sequence[Row]], object], *, after: int | None = None
) -> AsyncIterator[None]:
    """Hand every new row of the journal to ``write``, in order, until the context ends.

    New are the rows with a seq greater than ``after``; None: from now on. Where several processes copy the
    same store ``to`` the same place, one of them does. ``write`` is also called on a reader's thread.
    """
    seq = await store.read(journal.last_seq) if after is None else after
    turn = Turn(store, to)

    def take(rows: Sequence[Row]) -> None:
        nonlocal seq
        write(rows)
        seq = rows[-1].seq
        turn.store_seq(seq)

    async def follow_journal() -> None:
        while not turn.take():
            await store.clock.sleep(_TURN_LOOK_S)
        async for rows in follow(store, after=max(seq, turn.last_seq())):
            take(rows)

    def take_rest(connection: sqlite3.Connection) -> None:
        """Take the rows that were committed after the follower stopped, unless another writer will."""
        nonlocal seq
        while turn.take():
            seq = max(seq, turn.last_seq())
            while rows := journal.rows(connection, after=seq):
                take(rows)
            turn.give_back()
            # A writer that ended while this one had the turn left its last rows to it.
            if not journal.rows(connection, after=seq, limit=1):
                return

    follower = asyncio.create_task(follow_journal(), name=f"copy the journal to {to.name}")
    try:
        yield
    finally:
        follower.cancel()
        await asyncio.gather(follower, return_exceptions=True)
        await store.read(take_rest)
        turn.close()

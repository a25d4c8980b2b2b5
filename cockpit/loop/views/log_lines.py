"""Structured log lines: journal rows without their details, one JSON object a line.

Off by default. The file is private (0600) and appended to. Every line is a journal row, so the log contains
nothing that the journal does not, and secrets are masked in both.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TextIO

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import CockpitError
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.journal.follow import follow
from cockpit.store.journal.journal import Row

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
    """An open log; ``seq`` is the last row written."""

    def __init__(self, path: Path) -> None:
        try:
            descriptor = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600
            )
        except OSError as error:
            raise LogUnwritable(
                f"The log {path} cannot be written: {error.strerror or error}. "
                "Name another file with --log-json."
            ) from error
        self._file: TextIO = os.fdopen(descriptor, "a", encoding="utf-8")
        self.seq = 0

    def write(self, rows: Sequence[Row]) -> None:
        """Append rows and flush them; provisional fragments of text are left out."""
        self._file.writelines(f"{line(row)}\n" for row in rows if row.digest)
        self._file.flush()
        self.seq = rows[-1].seq

    def close(self) -> None:
        self._file.close()


@asynccontextmanager
async def logged(store: Store, path: str | None) -> AsyncIterator[None]:
    """Write every new row of the journal to the log at ``path``, in order, until the context ends.

    None logs nothing. Raises :class:`LogUnwritable`.
    """
    if path is None:
        yield
        return
    after = await store.read(journal.last_seq)
    log = LogFile(Path(path))
    follower = asyncio.create_task(_follow(store, log, after), name="log")
    try:
        yield
    finally:
        follower.cancel()
        await asyncio.gather(follower, return_exceptions=True)
        await store.read(lambda connection: _rest(connection, log, after))
        log.close()


async def _follow(store: Store, log: LogFile, after: int) -> None:
    async for rows in follow(store, after=after):
        log.write(rows)


def _rest(connection: sqlite3.Connection, log: LogFile, after: int) -> None:
    """Write the rows that were committed after the follower stopped."""
    after = max(after, log.seq)
    while rows := journal.rows(connection, after=after):
        log.write(rows)
        after = rows[-1].seq

"""The journal as server-sent events, for many readers at once.

Every reader has only a place in the journal, and reads on from there whenever something was written. So a
slow reader costs no memory, and no reader misses a row or gets one twice. See ``docs/reference/http.md``,
journal.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import CockpitError
from cockpit.store.db.database import Store
from cockpit.store.journal import journal, prune_anchor
from cockpit.store.journal.follow import changes
from cockpit.store.journal.journal import Row

MEDIA_TYPE = "text/event-stream"
RETRY_MS = 500
"""Milliseconds after which a client connects again."""
LOOK_S = 1.0
"""Seconds of silence after which a reader's loop gets a turn, to look at its token."""
BEAT_S = 15.0
"""Seconds of silence after which a comment shows that the connection lives."""
PACE_S = 0.02
"""Seconds between two deliveries: rows that come faster are delivered together."""
_LONGEST_ID = 17
_PAGE = 300
"""Rows that a reader who is behind takes from the store at once."""


class AfterEnd(CockpitError):
    """The client has seen rows that this journal does not have: it is another store, or an older copy."""

    code = "after_end"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows a reader gets; empty: of every session, of every event type."""

    session_id: str = ""
    action: str = ""


class JournalStream:
    """The journal for all readers of a server: each has a place in it, and reads on from there."""

    def __init__(self, store: Store, *, beat_s: float = BEAT_S, look_s: float = LOOK_S) -> None:
        self._store = store
        self._beat_s = beat_s
        self._look_s = look_s
        self._changed = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self.readers = 0
        """How many follow the journal."""
        self._closing = False

    async def close(self) -> None:
        """End every stream; their clients connect again when there is a server."""
        self._closing = True
        self._wake()
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait([self._watcher])

    async def events(
        self, after: int, wanted: Filter, *, follows: bool = True
    ) -> AsyncGenerator[bytes, None]:
        """Yield encoded rows after ``after``, in order; a comment, or nothing, now and then.

        It ends when the server ends, and without ``follows`` at the end of the journal.
        """
        if self._watcher is None and follows:
            self._watcher = asyncio.create_task(self._watch(), name="journal stream")
        self.readers += follows
        try:
            place, silence = after, 0.0
            while not self._closing:
                changed = self._changed
                data, place, is_end = await self._store.read(
                    partial(_read_page, place=place, wanted=wanted)
                )
                if data:
                    silence = 0.0
                    yield data
                if is_end and not follows:
                    return
                if is_end and not await self._wait(changed):
                    silence += self._look_s
                    beats = silence >= self._beat_s
                    silence = 0.0 if beats else silence
                    yield b": \n\n" if beats else b""
        finally:
            self.readers -= follows

    async def _wait(self, changed: asyncio.Event) -> bool:
        """Wait for rows; False after a moment without any."""
        try:
            async with asyncio.timeout(self._look_s):
                return await changed.wait()
        except TimeoutError:
            return False

    async def _watch(self) -> None:
        async with changes(self._store) as changed:
            while True:
                changed.clear()
                self._wake()
                await asyncio.sleep(PACE_S)
                await changed.wait()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def encode_row(row: Row) -> bytes:
    """Return a row as one event; its id is its seq."""
    return f"id: {row.seq}\ndata: {row.line()}\n\n".encode()


def encode_event(name: str, body: dict[str, object]) -> bytes:
    """Return an event that is not a row: ``pruned`` or ``end``. It has no id."""
    return f"event: {name}\ndata: {canonical_json(body)}\n\n".encode()


def check_start(connection: sqlite3.Connection, after: int) -> int:
    """Return the last pruned row, where the reader would get rows before it; else 0.

    Raises :class:`AfterEnd`.
    """
    last = journal.last_seq(connection)
    if after > last:
        raise AfterEnd(
            f"The journal ends at row {last}, and you have seen row {after}: it is another store, or an older"
            " copy. Read it again from its beginning."
        )
    pruned = prune_anchor.find(connection)
    return pruned.seq if pruned is not None and after < pruned.seq else 0


def _read_page(
    connection: sqlite3.Connection, place: int, wanted: Filter
) -> tuple[bytes, int, bool]:
    """Return encoded rows, the place after them, and whether that is the journal's end."""
    last = journal.last_seq(connection)
    rows = journal.rows(
        connection,
        after=place,
        session_id=wanted.session_id or None,
        action=wanted.action or None,
        limit=_PAGE,
    )
    is_end = len(rows) < _PAGE
    following = last if is_end else rows[-1].seq
    return b"".join(map(encode_row, rows)), max(place, following), is_end


def read_last_id(text: str) -> int | None:
    """Return the seq of a ``Last-Event-ID``; None for a text that is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _LONGEST_ID else None

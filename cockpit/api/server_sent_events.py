"""The journal as server-sent events, for many readers at once.

One follower reads each new row once and encodes it once. Every reader has only a place in the journal: it
takes rows from the recent ones in memory, or from the store where it is further behind. So a slow reader
costs no memory, and no reader misses a row or gets one twice. See ``docs/reference/http.md``, journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import CockpitError
from cockpit.store.db.database import Store
from cockpit.store.journal import journal, prune_anchor
from cockpit.store.journal.follow import follow
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
KEPT_BYTES = 4_000_000
"""Bytes of encoded rows in memory."""
_LONGEST_ID = 17
_PART = 100
"""Rows that are dropped from memory together."""
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

    def takes(self, session_id: str, action: str) -> bool:
        return self.session_id in ("", session_id) and self.action in ("", action)

    @property
    def takes_all(self) -> bool:
        return not self.session_id and not self.action


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows that were read together, encoded."""

    seqs: Sequence[int]
    kinds: Sequence[tuple[str, str]]
    """Session and event type of each row."""
    encoded: Sequence[bytes]
    whole: bytes

    def after(self, seq: int, wanted: Filter) -> bytes:
        """Return the rows with a greater seq that ``wanted`` takes."""
        first = bisect_right(self.seqs, seq)
        if first == 0 and wanted.takes_all:
            return self.whole
        rows = zip(self.kinds[first:], self.encoded[first:], strict=True)
        return b"".join(row for kind, row in rows if wanted.takes(*kind))


class JournalStream:
    """The rows of one store for all readers of a server."""

    def __init__(
        self,
        store: Store,
        *,
        kept_bytes: int = KEPT_BYTES,
        beat_s: float = BEAT_S,
        look_s: float = LOOK_S,
    ) -> None:
        self._store = store
        self._kept_bytes = kept_bytes
        self._beat_s = beat_s
        self._look_s = look_s
        self._parts: deque[_Part] = deque()
        self._size = 0
        self._start = 0
        """Every row after this seq that was read is in memory."""
        self._joining = asyncio.Lock()
        self._readers = 0
        self._changed = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._closing = False

    @property
    def readers(self) -> int:
        """How many follow the journal."""
        return self._readers

    @property
    def memory(self) -> int:
        """Bytes of encoded rows in memory."""
        return self._size

    async def close(self) -> None:
        """End every stream; their clients connect again when there is a server."""
        self._closing = True
        self._wake()
        for follower in (*self._ending, *filter(None, (self._follower,))):
            follower.cancel()
            await asyncio.wait([follower])

    async def events(
        self, after: int, wanted: Filter, *, follows: bool = True
    ) -> AsyncGenerator[bytes, None]:
        """Yield encoded rows after ``after``, in order; a comment, or nothing, now and then.

        It ends when the server ends, and without ``follows`` at the end of the journal.
        """
        if follows:
            await self._join()
        try:
            place, silence = after, 0.0
            while not self._has_ended(follows):
                changed = self._changed
                if follows and self._start <= place:
                    part = self._find(place)
                    if part is not None:
                        yield part.after(place, wanted)
                        place, silence = part.seqs[-1], 0.0
                    elif not await self._wait(changed):
                        silence += self._look_s
                        beats = silence >= self._beat_s
                        silence = 0.0 if beats else silence
                        yield b": \n\n" if beats else b""
                    continue
                data, place, is_end = await self._store.read(
                    partial(_read_page, place=place, wanted=wanted)
                )
                yield data
                if is_end and not follows:
                    return
        finally:
            if follows:
                self._leave()

    def _has_ended(self, follows: bool) -> bool:
        return self._closing or (follows and self._follower is not None and self._follower.done())

    async def _wait(self, changed: asyncio.Event) -> bool:
        """Wait for rows; False after a moment without any."""
        try:
            async with asyncio.timeout(self._look_s):
                return await changed.wait()
        except TimeoutError:
            return False

    def _find(self, place: int) -> _Part | None:
        """Return the first part in memory with a row after ``place``."""
        first = None
        for part in reversed(self._parts):
            if part.seqs[-1] <= place:
                break
            first = part
        return first

    async def _join(self) -> None:
        self._readers += 1
        async with self._joining:
            if self._follower is None:
                self._parts.clear()
                self._size = 0
                self._start = await self._store.read(journal.last_seq)
                self._follower = asyncio.create_task(self._follow(), name="journal stream")
                self._follower.add_done_callback(lambda _: self._wake())

    def _leave(self) -> None:
        self._readers -= 1
        if self._readers == 0 and self._follower is not None:
            self._follower.cancel()
            self._ending.add(self._follower)
            self._follower.add_done_callback(self._ending.discard)
            self._follower = None
            self._parts.clear()
            self._size = 0

    async def _follow(self) -> None:
        batches = cast("AsyncGenerator[list[Row], None]", follow(self._store, after=self._start))
        async with contextlib.aclosing(batches):
            async for batch in batches:
                for first in range(0, len(batch), _PART):
                    self._add(batch[first : first + _PART])
                self._wake()
                await asyncio.sleep(PACE_S)

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _add(self, batch: Sequence[Row]) -> None:
        encoded = [encode_row(row) for row in batch]
        part = _Part(
            [row.seq for row in batch],
            [(row.session_id, row.action) for row in batch],
            encoded,
            b"".join(encoded),
        )
        self._parts.append(part)
        self._size += len(part.whole)
        while self._size > self._kept_bytes and len(self._parts) > 1:
            oldest = self._parts.popleft()
            self._size -= len(oldest.whole)
            self._start = oldest.seqs[-1]


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

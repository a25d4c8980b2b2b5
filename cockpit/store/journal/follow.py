"""Following the journal live: commits of this process at once, those of others through the file.

A commit of another process shows as a write to the ``-wal`` file. SQLite writes there before the commit
can be read, and a busy disk takes its time, so a few looks follow within a fifth of a second. Where nothing
reports writes, a look ten times a second finds commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.journal.file_changes import FoldersWatch

SLOW_LOOK_S = 1.0
"""Seconds between two looks while no write is reported."""
BLIND_LOOK_S = 0.1
"""Seconds between two looks where writes cannot be reported."""
_LOOKS_S = (0.003, 0.008, 0.016, 0.03, 0.06, 0.2)
"""Seconds after a write of another process at which its commit may be readable."""
BATCH = 1000
SLICE = 200_000
"""Characters of JSON that are read at a time: a few milliseconds."""
_ROW_COST = 1_000
"""What a row costs in addition to its detail, in characters."""


async def follow(
    store: Store, *, after: int = 0, session_id: str | None = None
) -> AsyncIterator[list[journal.Row]]:
    """Yield batches of rows with seq greater than ``after``, for ever; never an empty batch.

    Close the generator (or cancel its task) to stop; nothing is left running then.
    """
    import aiosqlite  # the screen shows its first frame before it follows anything

    where, values = ("", ()) if session_id is None else (" AND session_id=?", (session_id,))
    sql = f"{journal.SELECT} WHERE seq>?{where} ORDER BY seq LIMIT {BATCH}"
    async with AsyncExitStack() as stack:
        changed = await stack.enter_async_context(changes(store))
        reader = await stack.enter_async_context(
            aiosqlite.connect(f"{store.path.as_uri()}?mode=ro", uri=True, isolation_level=None)
        )
        while True:
            changed.clear()
            records = await reader.execute_fetchall(sql, (after, *values))
            batch = await read_rows(records)
            if batch:
                after = batch[-1].seq
                yield batch
                continue
            await changed.wait_or_pause()


async def read_rows(records: Iterable[Sequence[Any]]) -> list[journal.Row]:
    """Read rows a slice at a time, so that a thousand of them do not block the event loop."""
    batch: list[journal.Row] = []
    characters = 0
    for values in records:
        characters += _ROW_COST + len(values[-2])
        if characters > SLICE:
            characters = 0
            await asyncio.sleep(0)
        batch.append(journal.read_row(tuple(values)))
    return batch


class Changes(asyncio.Event):
    """Set after every commit, of this process or another. ``pause_s``: after so many seconds without
    one, a reader looks all the same."""

    pause_s = SLOW_LOOK_S

    async def wait_or_pause(self) -> None:
        """Wait for a commit, at most ``pause_s`` seconds."""
        try:
            # Not wait_for: on 3.11 it can swallow a cancellation that meets the event.
            async with asyncio.timeout(self.pause_s):
                await self.wait()
        except TimeoutError:
            return


@asynccontextmanager
async def changes(store: Store) -> AsyncIterator[Changes]:
    """Yield an event that is set after every commit, of this process or another.

    The file is watched when the context is entered, so no later commit is missed.
    """
    loop = asyncio.get_running_loop()
    changed = Changes()

    def notify() -> None:
        try:
            loop.call_soon_threadsafe(changed.set)
        except RuntimeError:
            # The loop was closed while the writer's thread finished its last commit.
            return

    with ExitStack() as stack:
        stack.callback(store.on_commit(notify))
        looks = stack.enter_context(_Looks(changed))
        wal = store.path.with_name(f"{store.path.name}-wal")

        def note(_: Path | None, name: str) -> None:
            if name in (wal.name, ""):
                looks.start()

        try:
            watch = FoldersWatch(note)
            stack.callback(watch.close)
            watch.add(wal.parent)  # the folder, because SQLite may create the file later
        except OSError:
            # No inotify on this system, or no instance of it left.
            changed.pause_s = BLIND_LOOK_S
        yield changed


class _Looks:
    """The looks after a write of another process, until its commit can be read."""

    def __init__(self, changed: asyncio.Event) -> None:
        self._changed = changed
        self._first: asyncio.TimerHandle | None = None
        self._later: list[asyncio.TimerHandle] = []

    def __enter__(self) -> _Looks:
        return self

    def __exit__(self, *_: object) -> None:
        for timer in (self._first, *self._later):
            if timer is not None:
                timer.cancel()

    def start(self) -> None:
        """Look soon and some more times; further writes put off only the later looks."""
        loop = asyncio.get_running_loop()
        first, *later = _LOOKS_S
        if self._first is None:
            self._first = loop.call_later(first, self._look)
        for timer in self._later:
            timer.cancel()
        self._later = [loop.call_later(pause, self._changed.set) for pause in later]

    def _look(self) -> None:
        self._first = None
        self._changed.set()

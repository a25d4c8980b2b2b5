"""Following the journal live: commits of this process at once, those of others through the file.

A commit of another process shows as a change of the ``-wal`` file. Where the file system does not report
changes, a look once a second finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiosqlite

from cockpit.store.db.database import Store
from cockpit.store.journal import journal

SLOW_LOOK_S = 1.0
"""Seconds between two looks where no change was reported."""
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
            try:
                # Not wait_for: on 3.11 it can swallow a cancellation that meets the event.
                async with asyncio.timeout(SLOW_LOOK_S):
                    await changed.wait()
            except TimeoutError:
                continue  # No change was reported; read all the same.


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


@asynccontextmanager
async def changes(store: Store) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set after every commit, of this process or another.

    The file is watched when the context is entered, so no later commit is missed.
    """
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()

    def notify() -> None:
        try:
            loop.call_soon_threadsafe(changed.set)
        except RuntimeError:
            # The loop was closed while the writer's thread finished its last commit.
            return

    async with AsyncExitStack() as stack:
        stack.callback(store.on_commit(notify))
        watcher = asyncio.create_task(_watch(store, changed))
        stack.push_async_callback(_end, watcher)
        await asyncio.sleep(0)  # the watcher's first step sets the watch up
        yield changed


async def _watch(store: Store, changed: asyncio.Event) -> None:
    from watchfiles import awatch

    wal = str(store.path) + "-wal"
    async for _ in awatch(
        store.path.parent,
        watch_filter=lambda _change, path: path == wal,
        step=10,
        debounce=20,
        recursive=False,
    ):
        changed.set()


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

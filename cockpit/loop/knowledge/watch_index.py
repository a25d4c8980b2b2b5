"""Keep the index fresh while files change, and give chunks their vectors in between.

Runs in a process of its own, with the least priority: neither a screen nor a wave waits for it. See
``docs/reference/knowledge.md``, background.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

from cockpit.loop.knowledge.changed_documents import MOST_NAMED, find_documents
from cockpit.loop.knowledge.librarian import Librarian

LEAST_PRIORITY = 15
DEBOUNCE_MS = 200
"""Milliseconds in which further changes join the first."""


def yield_to_others() -> None:
    """Give this process the least priority."""
    try:
        os.nice(LEAST_PRIORITY)
    except OSError:
        return  # a system that allows no change: it works all the same


async def watch_index(
    librarian: Librarian, stop: asyncio.Event, tell: Callable[[str], object]
) -> None:
    """Bring the index up to date, then follow the project's files until ``stop`` is set.

    ``tell`` gets one line about each change. Raises ``CockpitError`` for an index that cannot be used.
    """
    from watchfiles import DefaultFilter, awatch

    root = librarian.place.root
    changed_text = asyncio.Event()
    watching = awatch(
        root,
        watch_filter=DefaultFilter(),
        debounce=DEBOUNCE_MS,
        step=DEBOUNCE_MS // 4,
        stop_event=stop,
        ignore_permission_denied=True,
    )
    done = await librarian.refresh()
    tell(f"{done.looked_at:,} documents, {done.changed:,} changed")
    embedding = asyncio.create_task(_embed_all(librarian, changed_text))
    changed_text.set()
    try:
        async for changes in watching:
            paths = await find_documents(root, {Path(path) for _, path in changes})
            if len(paths) > MOST_NAMED:
                done = await librarian.refresh()
            elif paths:
                done = await librarian.refresh_changed(paths)
            else:
                continue
            if done.changed or done.dropped:
                tell(f"{done.changed:,} changed, {done.dropped:,} gone")
                changed_text.set()
            if embedding.done():
                embedding.result()
    finally:
        embedding.cancel()
        await asyncio.gather(embedding, return_exceptions=True)


async def _embed_all(librarian: Librarian, changed_text: asyncio.Event) -> None:
    while True:
        await changed_text.wait()
        changed_text.clear()
        while await librarian.embed():
            continue


def stop_at_end_of_input(stop: asyncio.Event, read: Callable[[], bytes]) -> None:
    """Set ``stop`` when ``read`` returns nothing: whoever started this process is gone."""
    loop = asyncio.get_running_loop()

    def wait() -> None:
        while read():
            continue
        try:
            loop.call_soon_threadsafe(stop.set)
        except RuntimeError:
            return  # the loop ended before

    threading.Thread(target=wait, name="end-of-input", daemon=True).start()

"""Waiting for a change of the store, by this process or another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from cockpit.store.db.database import Store
from cockpit.store.journal.follow import changes

T = TypeVar("T")


class ChangeWaiter:
    """Waits for a value that a change of the store makes available. Without a waiter nothing is watched."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def wait_for(self, read_value: Callable[[], T | None], recheck_s: float = 1.0) -> T:
        """Return the first result of ``read_value`` that is not None.

        ``read_value`` is a blocking read or write of the store. It runs in a thread, after every change of
        the database file and at least every ``recheck_s`` seconds.
        """
        value = await asyncio.to_thread(read_value)
        if value is not None:
            return value
        async with changes(self._store) as changed:
            while True:
                changed.clear()
                value = await asyncio.to_thread(read_value)
                if value is not None:
                    return value
                try:
                    # Not wait_for: on 3.11 it can swallow a cancellation that meets the event.
                    async with asyncio.timeout(min(recheck_s, changed.pause_s)):
                        await changed.wait()
                except TimeoutError:
                    continue  # a deadline may have passed without a write

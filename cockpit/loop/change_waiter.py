"""The pulse: waiting for something that this process or another one writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from cockpit.store.db.database import Store
from cockpit.store.journal.follow import changes

T = TypeVar("T")


class Pulse:
    """Wakes whoever waits for something to be decided. While nobody waits, nothing is watched."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def until(self, ask: Callable[[], T | None], patience: float = 1.0) -> T:
        """The first answer of ``ask`` (a blocking read or write of the store) that is not None.

        Asks after every change of the file, and at least every ``patience`` seconds.
        """
        answer = await asyncio.to_thread(ask)
        if answer is not None:
            return answer
        async with changes(self._store) as changed:
            while True:
                changed.clear()
                answer = await asyncio.to_thread(ask)
                if answer is not None:
                    return answer
                try:
                    # Not wait_for: on 3.11 it can swallow a cancellation that meets the event.
                    async with asyncio.timeout(patience):
                        await changed.wait()
                except TimeoutError:
                    continue  # a deadline may have passed without anybody writing

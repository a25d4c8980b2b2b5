"""The pulse: one follower of the journal that wakes whoever waits for something to be decided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from cockpit.store import journal
from cockpit.store.database import Store
from cockpit.store.follow import follow

T = TypeVar("T")


class Pulse:
    """Follows the journal of all processes while it is entered.

    ``until`` asks a question again after every change, and at least every ``patience`` seconds.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._beat = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Pulse:
        after = await self._store.read(journal.last_seq)
        self._task = asyncio.create_task(self._run(after))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, ask: Callable[[], T | None], patience: float = 1.0) -> T:
        """The first answer of ``ask`` (a blocking read or write of the store) that is not None."""
        while True:
            beat = self._beat
            answer = await asyncio.to_thread(ask)
            if answer is not None:
                return answer
            try:
                # Not wait_for: on 3.11 it can swallow a cancellation that meets the event.
                async with asyncio.timeout(patience):
                    await beat.wait()
            except TimeoutError:
                continue  # a deadline may have passed without anybody writing

    async def _run(self, after: int) -> None:
        async for _ in follow(self._store, after=after):
            beat, self._beat = self._beat, asyncio.Event()
            beat.set()

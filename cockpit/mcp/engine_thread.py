"""The engine in a thread of its own: what a wave computes never holds up the protocol.

Opened at the first call that needs it; most clients only ever keep their tasks.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, TypeVar

from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store

if TYPE_CHECKING:
    from cockpit.loop.wave_context import Engine

T = TypeVar("T")


class EngineThread:
    """One engine over ``store``. Made and closed on the protocol's own event loop."""

    def __init__(self, store: Store, place: ProjectPaths, settings: RuntimeSettings) -> None:
        self._store = store
        self._place = place
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._engine: Engine | None = None
        self._opened = AsyncExitStack()
        self._opening: asyncio.Lock | None = None

    async def do(self, step: Callable[[Engine], Awaitable[T]]) -> T:
        """Run ``step`` with the engine, over there. Cancelling here cancels it there."""

        async def there() -> T:
            return await step(await self._open())

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(there(), self._started()))

    async def warm(self) -> None:
        """Open it before it is needed, with the vocabulary that tokens are counted by: loading that
        holds up every thread for half a second, once."""

        async def count(_: Engine) -> None:
            from cockpit.observe.count_tokens import count_tokens

            count_tokens("Loads the vocabulary.")

        await self.do(count)

    async def close(self) -> None:
        """End everything that runs there, then the thread."""
        if self._loop is None or self._thread is None:
            return
        loop, thread = self._loop, self._thread
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._end(), loop))
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)
        loop.close()
        self._loop = self._thread = None

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="cockpit-engine", daemon=True
            )
            self._thread.start()
        return self._loop

    async def _open(self) -> Engine:
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._engine is None:
                from cockpit.loop.runtime import runtime_over

                runtime = await self._opened.enter_async_context(
                    runtime_over(self._store, self._place, self._settings)
                )
                self._engine = runtime.engine
        return self._engine

    async def _end(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._opened.aclose()

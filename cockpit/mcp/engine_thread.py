"""The engine in a thread of its own, so that a wave's computing never delays the protocol.

It opens on the first call that needs it: most clients only use the backlog.
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
    """One engine over ``store``. Create and close it on the protocol's event loop."""

    def __init__(self, store: Store, place: ProjectPaths, settings: RuntimeSettings) -> None:
        self._store = store
        self._place = place
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._engine: Engine | None = None
        self._resources = AsyncExitStack()
        self._open_lock: asyncio.Lock | None = None

    async def run(self, step: Callable[[Engine], Awaitable[T]]) -> T:
        """Run ``step`` with the engine, in its thread; cancelling the call cancels the step."""

        async def run_step() -> T:
            return await step(await self._open())

        future = asyncio.run_coroutine_threadsafe(run_step(), self._start_loop())
        return await asyncio.wrap_future(future)

    async def warm(self) -> None:
        """Open the engine before the first call asks for it."""

        async def do_nothing(_: Engine) -> None:
            pass

        await self.run(do_nothing)

    async def close(self) -> None:
        """Cancel everything that runs in the thread, then end it."""
        if self._loop is None or self._thread is None:
            return
        loop, thread = self._loop, self._thread
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._shut_down(), loop))
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)
        loop.close()
        self._loop = self._thread = None

    def _start_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="cockpit-engine", daemon=True
            )
            self._thread.start()
        return self._loop

    async def _open(self) -> Engine:
        if self._open_lock is None:
            self._open_lock = asyncio.Lock()
        async with self._open_lock:
            if self._engine is None:
                from cockpit.loop.runtime import runtime_over

                runtime = await self._resources.enter_async_context(
                    runtime_over(self._store, self._place, self._settings)
                )
                self._engine = runtime.engine
        return self._engine

    async def _shut_down(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._resources.aclose()

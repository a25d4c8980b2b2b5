"""An engine that opens after the first frame of the screen.

Requests that come earlier wait for it; meanwhile the screen draws the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cockpit.core.project_paths import ProjectPaths
from cockpit.store.db.database import Store

if TYPE_CHECKING:
    from cockpit.app.engine_client import Engine

E = TypeVar("E", bound="Engine")


class DeferredEngine:
    """Pass every request of :class:`~cockpit.app.engine_client.Engine` on, as soon as the engine is open.

    ``store`` and ``place`` are available from the start. Create it where an event loop runs.
    """

    def __init__(self, store: Store, place: ProjectPaths) -> None:
        self.store = store
        self.place = place
        self._engine: asyncio.Future[Engine] = asyncio.get_running_loop().create_future()

    async def open(self, opening: Awaitable[E]) -> E:
        """Await the engine and return it; its error is raised here and in all waiting requests."""
        try:
            engine = await opening
        except Exception as error:
            self._engine.set_exception(error)
            self._engine.exception()  # raised here; perhaps no request waits
            raise
        self._engine.set_result(engine)
        return engine

    @property
    def engine(self) -> Engine:
        """This object, typed as the engine."""
        return cast("Engine", self)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def request(*values: Any, **named: Any) -> Any:
            engine = await asyncio.shield(self._engine)
            return await getattr(engine, name)(*values, **named)

        return request

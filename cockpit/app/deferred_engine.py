"""An engine that is opened behind the screen's first frame.

What the person asks of it before it is there waits for it; what the journal says is drawn meanwhile.
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


class LateEngine:
    """Every request of :class:`~cockpit.app.engine_client.Engine`, passed on as soon as there is one.

    ``store`` and ``place`` are there from the start. Make it where an event loop runs.
    """

    def __init__(self, store: Store, place: ProjectPaths) -> None:
        self.store = store
        self.place = place
        self._engine: asyncio.Future[Engine] = asyncio.get_running_loop().create_future()

    async def open(self, opened: Awaitable[E]) -> E:
        """Take the engine that ``opened`` gives; its error is raised here and in all who wait."""
        try:
            engine = await opened
        except Exception as error:
            self._engine.set_exception(error)
            self._engine.exception()  # told here; maybe nobody waits
            raise
        self._engine.set_result(engine)
        return engine

    @property
    def engine(self) -> Engine:
        """This, as the engine that it stands for."""
        return cast("Engine", self)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def asked(*values: Any, **named: Any) -> Any:
            engine = await asyncio.shield(self._engine)
            return await getattr(engine, name)(*values, **named)

        return asked

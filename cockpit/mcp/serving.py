"""A server from its start to its end: the store, the desk, one transport."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from cockpit.access.listening import Address
from cockpit.loop.settings import RuntimeSettings
from cockpit.mcp import stdio
from cockpit.mcp.callers import Guest
from cockpit.mcp.desk import Desk
from cockpit.mcp.server import made
from cockpit.mcp.toolbox import TOOLS
from cockpit.store.database import Store
from cockpit.store.place import Place
from cockpit.work.tool import Tier


async def over_stdio(place: Place, settings: RuntimeSettings, tier: Tier, secret: str) -> None:
    """Serve the client on standard input and output. Raises ``TokenRefused`` for a ``secret`` that
    opens nothing."""
    async with _desk(place, settings) as desk:
        await desk.caller(Guest(secret=secret))
        await stdio.serve(made(desk, TOOLS, tier, secret))


async def over_http(
    place: Place,
    settings: RuntimeSettings,
    tier: Tier,
    door: tuple[socket.socket, Address],
    tell: Callable[[str], None],
) -> None:
    """Serve clients that bring tokens, at a ``door`` that :func:`~cockpit.access.listening.listening`
    opened; ``tell`` is called with the address."""
    from cockpit.mcp import http  # with its server, which a client on standard input has no use for

    async with _desk(place, settings) as desk:
        await desk.engine.warm()
        await http.serve(made(desk, TOOLS, tier), desk, *door, tell)


@asynccontextmanager
async def _desk(place: Place, settings: RuntimeSettings) -> AsyncIterator[Desk]:
    place.prepare()
    with Store.open(place.database) as store:
        desk = Desk(store, place, settings)
        try:
            yield desk
        finally:
            await desk.close()

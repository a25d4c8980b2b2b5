"""A server from its start to its end: the store, the desk, one transport."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from cockpit.access.listen_address import Address
from cockpit.backlog.tools.work_tool import Tier
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.mcp import stdio_transport
from cockpit.mcp.callers import Guest
from cockpit.mcp.dispatcher import Desk
from cockpit.mcp.server import made
from cockpit.mcp.tool_table import TOOLS
from cockpit.store.db.database import Store


async def over_stdio(
    place: ProjectPaths, settings: RuntimeSettings, tier: Tier, secret: str
) -> None:
    """Serve the client on standard input and output. Raises ``TokenRefused`` for a ``secret`` that
    opens nothing."""
    async with _desk(place, settings) as desk:
        await desk.caller(Guest(secret=secret))
        await stdio_transport.serve(made(desk, TOOLS, tier, secret))


async def over_http(
    place: ProjectPaths,
    settings: RuntimeSettings,
    tier: Tier,
    door: tuple[socket.socket, Address],
    tell: Callable[[str], None],
) -> None:
    """Serve clients that bring tokens, at a ``door`` that :func:`~cockpit.access.listen_address.listening`
    opened; ``tell`` is called with the address."""
    from cockpit.mcp import (
        http_transport,  # with its server, which a client on standard input has no use for
    )

    async with _desk(place, settings) as desk:
        await desk.engine.warm()
        await http_transport.serve(made(desk, TOOLS, tier), desk, *door, tell)


@asynccontextmanager
async def _desk(place: ProjectPaths, settings: RuntimeSettings) -> AsyncIterator[Desk]:
    place.prepare()
    with Store.open(place.database) as store:
        desk = Desk(store, place, settings)
        try:
            yield desk
        finally:
            await desk.close()

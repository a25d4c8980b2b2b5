"""Run a server from start to end: open the store, create the dispatcher, serve one transport."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from cockpit.access.listen_address import Address
from cockpit.backlog.tools.work_tool import Tier
from cockpit.chains.watch_unattended import watching_unattended
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.views.copy_journal import recorded
from cockpit.mcp.answer_call import ToolServer
from cockpit.mcp.call_dispatcher import ClientConnection, Dispatcher
from cockpit.mcp.stdio_lines import claim_standard_streams
from cockpit.mcp.stdio_server import StdioServer
from cockpit.store.db.database import Store


async def serve_stdio(
    place: ProjectPaths, settings: RuntimeSettings, tier: Tier, token: str
) -> None:
    """Serve the client on standard input and output. Raises ``TokenRefused`` for an invalid token."""
    async with _open_dispatcher(place, settings) as dispatcher:
        await dispatcher.authenticate(ClientConnection(token=token))
        with claim_standard_streams() as wire:
            await StdioServer(ToolServer(dispatcher, tier), token, wire).serve()


async def serve_http(
    place: ProjectPaths,
    settings: RuntimeSettings,
    tier: Tier,
    listener: tuple[socket.socket, Address],
    announce: Callable[[str], None],
) -> None:
    """Serve clients that send tokens on a ``listener`` of
    :func:`~cockpit.access.listen_address.listening`; ``announce`` is called with the address."""
    # Imported here: the SDK takes a second and 40 MiB to load, and a client on standard input needs none.
    from cockpit.mcp import http_server

    async with _open_dispatcher(place, settings) as dispatcher:
        await dispatcher.engine()  # before the first call asks for it
        await http_server.serve(ToolServer(dispatcher, tier), dispatcher, *listener, announce)


@asynccontextmanager
async def _open_dispatcher(
    place: ProjectPaths, settings: RuntimeSettings
) -> AsyncIterator[Dispatcher]:
    place.prepare()
    with Store.open(place.database) as store:
        # Beside what its engine logs: most clients only use the backlog and never open one.
        async with recorded(store, settings), watching_unattended(store):
            dispatcher = Dispatcher(store, place, settings)
            try:
                async with dispatcher.refused.flushing():
                    yield dispatcher
            finally:
                await dispatcher.close()

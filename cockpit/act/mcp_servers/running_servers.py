"""The MCP servers that a process has running: each started by its first use, all ended together.

See ``docs/reference/tools.md``, MCP servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from cockpit.act.mcp_servers.listed_tools import ToolListing
from cockpit.act.mcp_servers.server_connection import ServerConnection, ServerFailed
from cockpit.act.mcp_servers.server_settings import McpServer
from cockpit.act.sandbox.bubblewrap import Sandbox


class RunningServers:
    """Starts, lists and ends servers. Use it from one event loop."""

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        sandbox: Sandbox,
        root: Path,
        environment: Mapping[str, str],
        variables: Mapping[str, str],
    ) -> None:
        """``environment`` is what programs get, ``variables`` all that the settings may name."""
        self._servers = servers
        self._sandbox = sandbox
        self._root = root
        self._environment = environment
        self._variables = variables
        self._open: dict[str, ServerConnection] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def find(self, name: str) -> McpServer:
        """Return the settings of a server. Raises :class:`ServerFailed`."""
        server = self._servers.get(name)
        if server is None or not server.enabled:
            raise ServerFailed(
                f"There is no MCP server {name!r} in your settings. Add [mcp.{name}] with a command."
                if server is None
                else f"The MCP server {name} is switched off in the settings."
            )
        return server

    async def list_tools(self, name: str) -> ToolListing:
        """Return what the server lists now; it is started if it does not run."""
        return (await self.connect(name))[1]

    async def connect(self, name: str) -> tuple[ServerConnection, ToolListing]:
        """Return the server's connection, and what it lists at this moment. Raises :class:`ServerFailed`."""
        server = self.find(name)
        async with self._locks.setdefault(name, asyncio.Lock()):
            connection = self._open.get(name)
            try:
                if connection is None or not connection.is_open:
                    connection = ServerConnection(
                        server, self._sandbox, self._root, self._environment, self._variables
                    )
                    await connection.open()
                    self._open[name] = connection
                listing = await connection.list_tools()
            except ServerFailed:
                await self.drop(name)
                if connection is not None:
                    await connection.close()
                raise
            return connection, listing

    async def drop(self, name: str) -> None:
        """End a server that failed; the next use starts it again."""
        connection = self._open.pop(name, None)
        if connection is not None:
            await connection.close()

    async def close(self) -> None:
        """End all servers."""
        connections, self._open = list(self._open.values()), {}
        await asyncio.gather(*(connection.close() for connection in connections))

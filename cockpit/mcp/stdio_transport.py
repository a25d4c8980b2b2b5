"""The SDK's server over lines of standard input, for clients whose messages need it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, cast

from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from cockpit.mcp.stdio_lines import Wire


class _Output:
    """What the SDK writes to: all but the answer to the request ``dropped``."""

    def __init__(self, wire: Wire, dropped: str) -> None:
        self._wire = wire
        self._dropped = dropped

    async def write(self, text: str) -> None:
        if self._dropped not in text or json.loads(text).get("id") != self._dropped:
            await self._wire.write(text)

    async def flush(self) -> None:
        """Nothing is held back."""


async def serve(server: Server[Any], lines: AsyncIterator[str], wire: Wire, dropped: str) -> None:
    """Serve until ``lines`` end. The answer to the request with the id ``dropped`` is not written."""
    try:
        async with stdio_server(
            stdin=cast(Any, lines), stdout=cast(Any, _Output(wire, dropped))
        ) as (read, write):
            await server.run(read, write, server.create_initialization_options())
    except BaseExceptionGroup as errors:
        # A client that stopped reading is gone, so there is no one to report the error to.
        _, others = errors.split(BrokenPipeError)
        if others is not None:
            raise others from None

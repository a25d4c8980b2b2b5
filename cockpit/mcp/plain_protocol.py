"""Serve a client on standard input without the SDK, until it sends a message that needs the SDK.

From such a message on (:mod:`cockpit.mcp.plain_messages`) the SDK's server reads the client's lines. It is
first sent the request that opened the connection again, so that it is in the same state; its answer to that
is dropped. See ``docs/reference/mcp.md``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from cockpit.mcp.answer_call import ToolServer, identify_client
from cockpit.mcp.plain_messages import (
    CONNECTION_CLOSED,
    UNCACHED,
    PlainMessage,
    read_plain,
    render_error,
    render_result,
    render_welcome,
)
from cockpit.mcp.stdio_lines import Wire

_REPLAYED = "cockpit: the opening request"


class PlainProtocol:
    """One client's connection."""

    def __init__(self, tools: ToolServer, token: str, wire: Wire) -> None:
        self._tools = tools
        self._token = token
        self._wire = wire
        self._opening: str | None = None
        self._enveloped = False
        self._client_name = ""
        self._in_flight: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Serve until the client closes its end, or stops reading."""
        try:
            async with aclosing(self._unusual_lines()) as lines:
                async for first in lines:
                    await self._serve_with_sdk(first, lines)
        except BrokenPipeError:
            pass  # The client is gone, so there is no one to report the error to.
        finally:
            await self._close()

    async def _unusual_lines(self) -> AsyncGenerator[str, None]:
        """Answer plain messages; yields the first line that is not plain, and all after it."""
        plain = True
        async for line in self._wire.lines():
            if not line.strip():
                continue
            message = read_plain(line)
            if message is not None and self._cancels(message):
                continue
            if plain:
                plain = message is not None and await self._answer(message, line)
            if not plain:
                yield line

    def _cancels(self, message: PlainMessage) -> bool:
        """Cancel a call that is answered here; it gets no answer."""
        if message.method != "notifications/cancelled" or message.request_id is not None:
            return False
        call = self._in_flight.pop(str(message.params.get("requestId")), None)
        if call is not None:
            call.cancel()
        return call is not None

    async def _answer(self, message: PlainMessage, line: str) -> bool:
        """Answer a plain message, or return False where it does not fit the connection's state."""
        if message.request_id is None:
            return self._opening is not None
        if self._opening is None:
            if message.method != "initialize" and not message.enveloped:
                return False
            self._opening, self._enveloped = line, message.enveloped
            if message.method == "initialize":
                self._client_name = message.client_name or ""
        elif message.method == "initialize" or message.enveloped != self._enveloped:
            return False
        if message.method in ("initialize", "server/discover"):
            await self._wire.write(render_welcome(message))
        elif message.method == "ping":
            await self._wire.write(render_result(message, {}))
        elif message.method == "tools/list":
            tools = {"tools": self._tools.list_tools()}
            await self._wire.write(render_result(message, tools, **UNCACHED))
        else:
            self._in_flight[str(message.request_id)] = asyncio.create_task(self._call(message))
        return True

    async def _call(self, request: PlainMessage) -> None:
        key, task = str(request.request_id), asyncio.current_task()
        name = self._client_name if request.client_name is None else request.client_name
        client = identify_client(self._token, name)
        try:
            text, is_error = await self._tools.call(
                request.params["name"], client, request.params.get("arguments")
            )
            result = {"content": [{"text": text, "type": "text"}], "isError": is_error}
            answer = render_result(request, result)
        except asyncio.CancelledError:
            if self._in_flight.get(key) is not task:
                raise  # cancelled by the client, which no longer waits
            answer = render_error(request, CONNECTION_CLOSED)
        finally:
            if self._in_flight.get(key) is task:
                del self._in_flight[key]
        try:
            await self._wire.write(answer)
        except BrokenPipeError:
            self._wire.stop()

    async def _serve_with_sdk(self, first: str, lines: AsyncIterator[str]) -> None:
        from cockpit.mcp import stdio_transport
        from cockpit.mcp.server import create_server

        async def replay() -> AsyncIterator[str]:
            if self._opening is not None:
                opening = json.loads(self._opening)
                opening["id"] = _REPLAYED
                yield json.dumps(opening)
            yield first
            async for line in lines:
                yield line

        server = create_server(self._tools, self._token)
        await stdio_transport.serve(server, replay(), self._wire, _REPLAYED)

    async def _close(self) -> None:
        calls = list(self._in_flight.values())
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

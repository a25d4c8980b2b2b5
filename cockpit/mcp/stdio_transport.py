"""MCP over standard input and output: one client, as long as it keeps the input open."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from typing import Any, cast

from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

_READ_AHEAD = 64
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


class Lines:
    """Lines of standard input, read by a thread of their own.

    A read cannot be called off: on a thread that nobody waits for, the server ends when it is told to
    and not with the client's next line.
    """

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(_READ_AHEAD)
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        self._room.release()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        # A duplicate: closing it at the end must not close the process's own standard input.
        with os.fdopen(os.dup(0), encoding="utf-8", errors="replace") as stream:
            for line in stream:
                self._room.acquire()
                if loop.is_closed():
                    return
                loop.call_soon_threadsafe(self._lines.put_nowait, _whole(line))
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._lines.put_nowait, None)


def _whole(line: str) -> str:
    r"""The line without halves of a character: ``"\ud83d"``, as a client writes a text that was cut
    inside an emoji. The SDK's reader takes no such line, and its call would never be answered."""
    if not _HALF.search(line):
        return line
    try:
        message = json.loads(line)
    except ValueError:
        return line
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


async def serve(server: Server[Any]) -> None:
    """Serve the one client until it closes the input. Nothing else reaches standard output."""
    try:
        async with stdio_server(stdin=cast(Any, Lines())) as (read, write):
            await server.run(read, write, server.create_initialization_options())
    except BaseExceptionGroup as errors:
        # A client that stopped reading has left: there is nobody to tell.
        _, others = errors.split(BrokenPipeError)
        if others is not None:
            raise others from None

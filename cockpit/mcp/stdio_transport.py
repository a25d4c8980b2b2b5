"""MCP over standard input and output: one client, until it closes the input."""

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
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class Lines:
    """Lines of standard input, read by a daemon thread.

    A blocking read cannot be cancelled: on a daemon thread it does not keep a stopped server alive until
    the client's next line.
    """

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._read_ahead = threading.Semaphore(_READ_AHEAD)
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        self._read_ahead.release()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        # A duplicate: closing it at the end must not close the process's own standard input.
        with os.fdopen(os.dup(0), encoding="utf-8", errors="replace") as stream:
            for line in stream:
                self._read_ahead.acquire()
                if loop.is_closed():
                    return
                loop.call_soon_threadsafe(self._lines.put_nowait, _replace_surrogates(line))
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._lines.put_nowait, None)


def _replace_surrogates(line: str) -> str:
    r"""Replace halves of surrogate pairs, such as ``"\ud83d"`` from a text cut inside an emoji.

    The SDK's reader rejects such a line, and the client would never get an answer.
    """
    if not _SURROGATE.search(line):
        return line
    try:
        message = json.loads(line)
    except ValueError:
        return line
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


async def serve(server: Server[Any]) -> None:
    """Serve the client until it closes the input. Nothing else writes to standard output."""
    try:
        async with stdio_server(stdin=cast(Any, Lines())) as (read, write):
            await server.run(read, write, server.create_initialization_options())
    except BaseExceptionGroup as errors:
        # A client that stopped reading is gone, so there is no one to report the error to.
        _, others = errors.split(BrokenPipeError)
        if others is not None:
            raise others from None

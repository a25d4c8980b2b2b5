"""The lines of standard input and output between a client and its server."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

_READ_AHEAD = 64


class Wire:
    """A client's lines. Create it with :func:`claim_standard_streams`, on the event loop.

    A blocking read cannot be cancelled: on a daemon thread it does not keep a stopped server alive until
    the client's next line.
    """

    def __init__(self, output: int) -> None:
        self._output = output
        self._write_lock = asyncio.Lock()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._read_ahead = threading.Semaphore(_READ_AHEAD)
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()

    async def lines(self) -> AsyncIterator[str]:
        """Yield each line, until the client closes its end or :meth:`stop` is called."""
        while (line := await self._lines.get()) is not None:
            self._read_ahead.release()
            yield line

    def stop(self) -> None:
        """End :meth:`lines`: the client no longer reads."""
        self._lines.put_nowait(None)

    async def write(self, text: str) -> None:
        """Write whole lines. Raises ``BrokenPipeError`` if the client no longer reads."""
        async with self._write_lock:
            await asyncio.to_thread(self._write_all, text.encode("utf-8", "replace"))

    def _write_all(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._output, rest) :]

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        # A duplicate: closing it at the end must not close the process's own standard input.
        with os.fdopen(os.dup(0), encoding="utf-8", errors="replace") as stream:
            for line in stream:
                self._read_ahead.acquire()
                if loop.is_closed():
                    return
                loop.call_soon_threadsafe(self._lines.put_nowait, line)
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._lines.put_nowait, None)


@contextmanager
def claim_standard_streams() -> Iterator[Wire]:
    """Open the wire. Meanwhile descriptor 1 is standard error, so that stray output misses the wire."""
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield Wire(output)
    finally:
        os.dup2(output, 1)
        os.close(output)

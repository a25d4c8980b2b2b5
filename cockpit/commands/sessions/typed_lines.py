"""Lines that the user types at a terminal, each with the time at which Enter was pressed.

Specified in ``docs/reference/screen.md``, linear mode.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import threading
from collections.abc import Callable, Iterator

import msgspec

_CHUNK = 4096


class Typed(msgspec.Struct, frozen=True):
    """A line, and when Enter was pressed, in seconds of the store's monotonic clock."""

    text: str
    at: float


class TypedLines:
    """Reads lines of a terminal in a thread and hands each to ``put`` in the event loop.

    ``terminal`` is its file descriptor. ``put`` gets None at the end of the input. ``now`` gives seconds,
    as in :class:`Typed`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        put: Callable[[Typed | None], None],
        now: Callable[[], float],
        terminal: int,
    ) -> None:
        self._loop = loop
        self._put = put
        self._now = now
        self._terminal = terminal
        self._rest = b""
        self._ended = False
        self._reading = threading.Lock()

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read_all, name="lines", daemon=True).start()

    def catch_up(self) -> None:
        """Take every line that was typed until now.

        On a busy machine the thread may come late to a line. Call this after a question was printed and
        before its time is noted: a line that was typed ahead then counts as such.
        """
        with self._reading:
            while not self._ended and self._is_readable(0):
                self._read_chunk()

    @contextlib.contextmanager
    def lend(self) -> Iterator[None]:
        """Leave the terminal to another program, such as an editor, until the block ends."""
        with self._reading:
            yield

    def _read_all(self) -> None:
        while not self._ended:
            if self._is_readable(None):
                with self._reading:
                    # Another may have read meanwhile.
                    if self._is_readable(0):
                        self._read_chunk()

    def _is_readable(self, timeout_s: float | None) -> bool:
        poll = select.poll()
        poll.register(self._terminal, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else timeout_s * 1_000))

    def _read_chunk(self) -> None:
        try:
            chunk = os.read(self._terminal, _CHUNK)
        except OSError:  # the terminal is gone
            chunk = b""
        at = self._now()
        if not chunk:
            self._ended = True
            self._loop.call_soon_threadsafe(self._put, None)
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            typed = Typed(line.decode("utf-8", "replace").rstrip("\r"), at)
            self._loop.call_soon_threadsafe(self._put, typed)

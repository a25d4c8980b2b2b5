"""The terminal of the user: its modes, its size, its keys, and its return whatever happens.

Specified in ``docs/reference/connect.md``.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cockpit.core.terminal.far_terminal import GIVE_BACK

_READ = 65_536
_LAST_WORDS_S = 0.5
"""Seconds that the terminal may take to read how it is given back."""
_SECOND_ON, _SECOND_OFF = "\x1b[?1049h", "\x1b[?1049l"
_LEAVE_KITTY = "\x1b[<u"
_NOTE = "\x1b7\x1b[999;1H\x1b[0;7m {} \x1b[0m\x1b[K\x1b8"


class TerminalGone(Exception):
    """Nothing is at the other end of the terminal any more."""


class OwnTerminal:
    """The terminal of this process, opened once more: its modes of reading stay those of the shell."""

    def __init__(self) -> None:
        self._end = os.open(
            os.ttyname(sys.stdin.fileno()), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
        )
        self._before: list[Any] = termios.tcgetattr(self._end)
        self._is_drawn_on = self._is_second = False

    def take(self) -> None:
        """Switch to raw mode."""
        tty.setraw(self._end, termios.TCSANOW)

    def give_back(self) -> None:
        """Leave every mode that a screen may have switched on. A terminal that does not read is left so."""
        if self._is_drawn_on:
            # On the first screen this would move the cursor back over what was printed since.
            leave = f"{_LEAVE_KITTY}{_SECOND_OFF}" if self._is_second else ""
            data = GIVE_BACK.replace(_SECOND_OFF, leave).encode()
            deadline = time.monotonic() + _LAST_WORDS_S
            with suppress(OSError):
                while data and (left := deadline - time.monotonic()) > 0:
                    if select.select([], [self._end], [], left)[1]:
                        data = data[os.write(self._end, data) :]
            self._is_drawn_on = False
        with suppress(termios.error):
            termios.tcsetattr(self._end, termios.TCSANOW, self._before)

    def close(self) -> None:
        """Give the terminal back, and close it."""
        self.give_back()
        os.close(self._end)

    def size(self) -> tuple[int, int]:
        """Return the size in columns and rows, as a server takes it."""
        try:
            columns, rows = os.get_terminal_size(self._end)
        except OSError:
            columns, rows = 80, 24
        return min(max(columns, 2), 1_000), min(max(rows, 2), 1_000)

    def watch_keys(self, on_keys: Callable[[bytes], object]) -> None:
        """Call ``on_keys`` with what was typed; with nothing once the terminal is gone."""

        def read() -> None:
            try:
                typed = os.read(self._end, _READ)
            except BlockingIOError:
                return
            except OSError:
                typed = b""
            if not typed:
                self.watch_no_keys()
            on_keys(typed)

        asyncio.get_running_loop().add_reader(self._end, read)

    def watch_no_keys(self) -> None:
        """Read no keys any more."""
        asyncio.get_running_loop().remove_reader(self._end)

    async def write(self, data: bytes) -> None:
        """Write all of ``data``, as fast as the terminal takes it. Raises :class:`TerminalGone`."""
        self._is_drawn_on = True
        on, off = data.rfind(_SECOND_ON.encode()), data.rfind(_SECOND_OFF.encode())
        if on != off:
            self._is_second = on > off
        loop = asyncio.get_running_loop()
        while data:
            try:
                data = data[os.write(self._end, data) :]
            except BlockingIOError:
                ready = asyncio.Event()
                loop.add_writer(self._end, ready.set)
                try:
                    await ready.wait()
                finally:
                    loop.remove_writer(self._end)
            except OSError as error:
                raise TerminalGone from error

    async def note(self, text: str) -> None:
        """Show one line of this program's own at the bottom."""
        await self.write(_NOTE.format(text).encode())

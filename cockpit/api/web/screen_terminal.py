"""A program on a pseudo-terminal whose other end is a browser. See ``docs/reference/web.md``."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

LEAVE_S = 20.0
"""Seconds that a program has to end, after its terminal went away and after each signal."""
WRITE_S = 10.0
"""Seconds in which a program must take keys."""
_CHUNK = 65_536
# The terminal becomes that of the new session here: a function between fork and exec could block.
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios\n"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "os.execv(sys.argv[1], sys.argv[1:])\n"
)


class DoesNotRead(Exception):
    """The program takes no keys any more."""


class ScreenTerminal:
    """A pseudo-terminal, and the program on it. Close it in the end."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        size: tuple[int, int],
    ) -> None:
        self._main, end = os.openpty()
        try:
            self.resize(size)
            os.set_blocking(self._main, False)
            self._program = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _TAKE_TERMINAL, *command],
                stdin=end,
                stdout=end,
                stderr=end,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._main)
            raise
        finally:
            os.close(end)

    @property
    def pid(self) -> int:
        """The program's process."""
        return self._program.pid

    def resize(self, size: tuple[int, int]) -> None:
        """Give the terminal a size in columns and rows; the program hears of it."""
        columns, rows = size
        fcntl.ioctl(self._main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def read(self) -> bytes:
        """Return what the program wrote, at least one byte; none once it has ended."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                return os.read(self._main, _CHUNK)
            except BlockingIOError:
                await _ready(loop.add_reader, loop.remove_reader, self._main)
            except OSError:  # nothing has the terminal open any more
                return b""

    async def write(self, keys: bytes) -> None:
        """Send keys. Raises :class:`DoesNotRead` when they are not taken in time."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(WRITE_S):
                while keys:
                    try:
                        keys = keys[os.write(self._main, keys) :]
                    except BlockingIOError:
                        await _ready(loop.add_writer, loop.remove_writer, self._main)
        except (OSError, TimeoutError) as error:
            raise DoesNotRead from error

    async def close(self) -> None:
        """Take the terminal away, and wait for the program's end; one that does not end is killed.

        The kernel tells the program. It ends as on every lost terminal; its sessions can be resumed.
        """
        if self._main >= 0:
            os.close(self._main)
            self._main = -1
        for number in (signal.SIGTERM, signal.SIGKILL, None):
            if await self._ends_within(LEAVE_S) or number is None:
                return
            with suppress(ProcessLookupError):
                os.killpg(self._program.pid, number)

    async def _ends_within(self, seconds: float) -> bool:
        try:
            await asyncio.to_thread(self._program.wait, seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


async def _ready(
    add: Callable[..., None], remove: Callable[[int], object], descriptor: int
) -> None:
    ready = asyncio.Event()
    add(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        remove(descriptor)

"""One screen on a terminal elsewhere: its output, the keys, and the marks that say what its user saw.

Specified in ``docs/reference/connect.md``.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from starlette.websockets import WebSocket, WebSocketDisconnect

from cockpit.api.web.screen_messages import ENDED, MALFORMED, REPLACED, STUCK, Message, Size
from cockpit.api.web.screen_terminal import DoesNotRead, ScreenTerminal
from cockpit.core.terminal.far_terminal import (
    AGAIN,
    OFF,
    ON,
    MarkFinder,
    look_again_words,
    pressed_words,
    without_words,
)

WINDOW = 262_144
"""Bytes on the way to a terminal. With more the screen waits, and leaves frames out."""

Receive = Callable[[], Awaitable[Message | None]]


class ShownOutput:
    """What goes to one terminal, and which of the screen's numbers lie in the bytes that it has drawn.

    With ``waits`` nothing goes there before the screen begins to draw itself whole.
    """

    def __init__(self, finder: MarkFinder, *, waits: bool = False) -> None:
        self._finder = finder
        self._waits = waits
        self.sent = 0
        self._numbers: deque[tuple[int, int]] = deque()
        self._settled = 0
        """The last number that had settled."""

    def take(self, output: bytes, note: Callable[[str], object]) -> bytes:
        """Return what of the output goes to the terminal; ``note`` gets its marks without a number."""
        kept = b""
        for piece, name in self._finder.take(output):
            if not self._waits:
                kept += piece
            if name.isdecimal():
                if not self._waits:
                    self._numbers.append((self.sent + len(kept), int(name)))
            elif name:
                self._waits = self._waits and name != AGAIN
                note(name)
        self.sent += len(kept)
        return kept

    def find_settled(self, size: int) -> int:
        """Return the last number in the first ``size`` bytes."""
        while self._numbers and self._numbers[0][0] <= size:
            self._settled = self._numbers.popleft()[1]
        return self._settled


class ShownScreen:
    """A screen and the terminal that shows it now, if one does."""

    def __init__(self, terminal: ScreenTerminal, owner: str = "") -> None:
        self.terminal = terminal
        self.owner = owner
        """The id of the token that it was opened with."""
        self.name = secrets.token_urlsafe(24)
        self._finder = MarkFinder()
        self._listens = False
        """Whether the screen reads the server's words; not while an editor has its terminal."""
        self._room = asyncio.Event()
        self._seen = 0
        self._taken: asyncio.Event | None = None
        """Set when another line of the same terminal takes the screen; None without a line."""
        self._is_free = asyncio.Event()
        self._is_free.set()

    @property
    def is_shown(self) -> bool:
        """Whether a terminal shows it now."""
        return self._taken is not None

    async def show(
        self, socket: WebSocket, receive: Receive, size: Size, *, again: bool = False
    ) -> int | None:
        """Show the screen on a terminal until one of both ends; return why, or None for a lost line.

        ``again``: the terminal showed it over another line before. A line that still shows it ends.
        """
        while self._taken is not None:
            self._taken.set()
            await self._is_free.wait()
        self._taken = taken = asyncio.Event()
        self._is_free.clear()
        self._seen = 0
        tasks = [asyncio.create_task(_wait_taken(taken))]
        try:
            output = ShownOutput(self._finder, waits=again and self._listens)
            if again:
                await self._draw_again(size)
            tasks.append(asyncio.create_task(self._show(socket, output)))
            tasks.append(asyncio.create_task(self._press(receive, output)))
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return await next(task for task in tasks if task in done)
        except DoesNotRead:
            return STUCK
        except WebSocketDisconnect:
            return None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._taken = None
            self._is_free.set()

    async def _draw_again(self, size: Size) -> None:
        columns, rows = size
        if self._listens:
            self.terminal.resize(size)
            await self.terminal.write(look_again_words().encode())
        else:  # a program of the user's draws itself for a new size
            self.terminal.resize((columns, rows - 1))
            await asyncio.sleep(0)
            self.terminal.resize(size)

    async def _show(self, socket: WebSocket, output: ShownOutput) -> int:
        while read := await self.terminal.read():
            if kept := output.take(read, self._note):
                while output.sent - self._seen > WINDOW + len(kept):
                    self._room.clear()
                    await self._room.wait()
                await socket.send_bytes(kept)
        return ENDED

    async def _press(self, receive: Receive, output: ShownOutput) -> int:
        while True:
            message = await receive()
            if message is None or max(message.seen, message.settled) > output.sent:
                return MALFORMED
            self._seen = max(self._seen, message.seen)
            self._room.set()
            number = output.find_settled(message.settled)
            if message.size is not None:
                self.terminal.resize(message.size)
            if message.keys:
                words = pressed_words(number, message.gap) if self._listens else ""
                keys = words + without_words(message.keys)
                await self.terminal.write(keys.encode("utf-8", "replace"))

    def _note(self, name: str) -> None:
        if name in (ON, OFF):
            self._listens = name == ON


async def _wait_taken(taken: asyncio.Event) -> int:
    await taken.wait()
    return REPLACED


async def close_line(socket: WebSocket, code: int | None) -> None:
    """Close a line that is still there; ``code`` is None for one that was lost."""
    if code is not None:
        with suppress(WebSocketDisconnect, RuntimeError):  # it was lost meanwhile
            await socket.close(code)

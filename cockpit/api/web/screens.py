"""Screens in the tabs of browsers: their output, the keys, and the marks that say what their users saw.

Specified in ``docs/reference/web.md``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from cockpit.api.web.screen_terminal import DoesNotRead, ScreenTerminal
from cockpit.core.read_record import decode_json
from cockpit.core.terminal.far_terminal import OFF, ON, MarkFinder, pressed_words, without_words

LARGEST_MESSAGE = 65_536
"""Bytes of one message of a page."""

GOING_AWAY = 1001
ENDED, FULL, STUCK, MALFORMED = 4001, 4002, 4003, 4004
"""Why the server closed a line: its program ended, there are too many screens, it reads no keys, and a
message that no page sends."""
MOST_SCREENS = 8
"""Screens at the same time."""
WINDOW = 262_144
"""Bytes on the way to a page. With more the screen waits, and leaves frames out."""

Count = Annotated[int, msgspec.Meta(ge=0)]
Cells = Annotated[int, msgspec.Meta(ge=2, le=1_000)]
Size = tuple[Cells, Cells]


class Message(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What was pressed and seen. Bytes are counted from the line's first."""

    keys: str = ""
    seen: Count = 0
    """Bytes of the screen that the page has drawn."""
    settled: Count = 0
    """Those that it had drawn half a second before the keys were pressed."""
    gap: Count = 0
    """Milliseconds since the keys before."""
    size: Size | None = None


class Screens:
    """All screens. ``open_terminal`` starts one in a size of columns and rows."""

    def __init__(self, open_terminal: Callable[[Size], ScreenTerminal]) -> None:
        self._open = open_terminal
        self._lines: set[asyncio.Task[int | None]] = set()

    async def serve(self, socket: WebSocket) -> None:
        """Show a screen in a tab until the tab, the screen or the server ends."""
        await socket.accept()
        line = asyncio.create_task(self._run(socket, is_full=len(self._lines) >= MOST_SCREENS))
        self._lines.add(line)
        try:
            await asyncio.wait((line,))
        finally:
            self._lines.discard(line)
        await _close(socket, GOING_AWAY if line.cancelled() else line.result())

    async def close(self) -> None:
        """End every screen, and wait for the programs."""
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def _run(self, socket: WebSocket, *, is_full: bool) -> int | None:
        try:
            first = await _receive(socket)
        except WebSocketDisconnect:
            return None
        if first is None or first.size is None:
            return MALFORMED
        if is_full:
            return FULL
        terminal = self._open(first.size)
        try:
            return await ShownScreen(terminal).show(socket)
        finally:
            await asyncio.shield(terminal.close())


class ShownOutput:
    """What goes to one page, and which of the screen's numbers lie in the bytes that it has drawn."""

    def __init__(self) -> None:
        self._finder = MarkFinder()
        self.sent = 0
        self.listens = False
        """Whether the screen reads the server's words; not while an editor has its terminal."""
        self._numbers: deque[tuple[int, int]] = deque()
        self._settled = 0
        """The last number that had settled."""

    def take(self, output: bytes) -> bytes:
        """Return what of the output goes to the page."""
        kept = b""
        for piece, name in self._finder.take(output):
            kept += piece
            if name.isdecimal():
                self._numbers.append((self.sent + len(kept), int(name)))
            elif name in (ON, OFF):
                self.listens = name == ON
        self.sent += len(kept)
        return kept

    def find_settled(self, size: int) -> int:
        """Return the last number in the first ``size`` bytes."""
        while self._numbers and self._numbers[0][0] <= size:
            self._settled = self._numbers.popleft()[1]
        return self._settled


class ShownScreen:
    """A screen and the page that shows it."""

    def __init__(self, terminal: ScreenTerminal) -> None:
        self._terminal = terminal
        self._output = ShownOutput()
        self._room = asyncio.Event()
        self._seen = 0

    async def show(self, socket: WebSocket) -> int | None:
        """Show the screen until it or the page ends; return why, or None for a lost line."""
        tasks = [
            asyncio.create_task(self._show(socket)),
            asyncio.create_task(self._press(socket)),
        ]
        try:
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

    async def _show(self, socket: WebSocket) -> int:
        output = self._output
        while read := await self._terminal.read():
            if kept := output.take(read):
                while output.sent - self._seen > WINDOW + len(kept):
                    self._room.clear()
                    await self._room.wait()
                await socket.send_bytes(kept)
        return ENDED

    async def _press(self, socket: WebSocket) -> int:
        output = self._output
        while True:
            message = await _receive(socket)
            if message is None or max(message.seen, message.settled) > output.sent:
                return MALFORMED
            self._seen = max(self._seen, message.seen)
            self._room.set()
            number = output.find_settled(message.settled)
            if message.size is not None:
                self._terminal.resize(message.size)
            if message.keys:
                words = pressed_words(number, message.gap) if output.listens else ""
                keys = words + without_words(message.keys)
                await self._terminal.write(keys.encode("utf-8", "replace"))


async def _receive(socket: WebSocket) -> Message | None:
    """Return a page's next message; None for what none sends. Raises ``WebSocketDisconnect``."""
    event = await socket.receive()
    if event["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(event.get("code", 1006))
    try:
        return decode_json(event.get("text") or "", Message)
    except (msgspec.DecodeError, UnicodeError):
        return None


async def _close(socket: WebSocket, code: int | None) -> None:
    """Close a line that is still there; ``code`` is None for one that was lost."""
    if code is not None:
        with suppress(WebSocketDisconnect, RuntimeError):  # it was lost meanwhile
            await socket.close(code)

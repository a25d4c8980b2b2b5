"""One screen in a tab of a browser: its output, the keys, and the marks that say what its user saw.

Specified in ``docs/reference/web.md``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from cockpit.api.web.screen_messages import ENDED, MALFORMED, STUCK, Message
from cockpit.api.web.screen_terminal import DoesNotRead, ScreenTerminal
from cockpit.core.read_record import decode_json
from cockpit.core.terminal.far_terminal import OFF, ON, MarkFinder, pressed_words, without_words

WINDOW = 262_144
"""Bytes on the way to a page. With more the screen waits, and leaves frames out."""


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
            message = await receive_message(socket)
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


async def receive_message(socket: WebSocket) -> Message | None:
    """Return a page's next message; None for what none sends. Raises ``WebSocketDisconnect``."""
    event = await socket.receive()
    if event["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(event.get("code", 1006))
    try:
        return decode_json(event.get("text") or "", Message)
    except (msgspec.DecodeError, UnicodeError):
        return None


async def close_line(socket: WebSocket, code: int | None) -> None:
    """Close a line that is still there; ``code`` is None for one that was lost."""
    if code is not None:
        with suppress(WebSocketDisconnect, RuntimeError):  # it was lost meanwhile
            await socket.close(code)

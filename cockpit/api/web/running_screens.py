"""The screens of one server: one for each tab of a browser. See ``docs/reference/web.md``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.websockets import WebSocket, WebSocketDisconnect

from cockpit.api.web.screen_messages import FULL, GOING_AWAY, MALFORMED, Size
from cockpit.api.web.screen_terminal import ScreenTerminal
from cockpit.api.web.shown_screen import ShownScreen, close_line, receive_message

MOST_SCREENS = 8
"""Screens at the same time."""


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
        await close_line(socket, GOING_AWAY if line.cancelled() else line.result())

    async def close(self) -> None:
        """End every screen, and wait for the programs."""
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def _run(self, socket: WebSocket, *, is_full: bool) -> int | None:
        try:
            first = await receive_message(socket)
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

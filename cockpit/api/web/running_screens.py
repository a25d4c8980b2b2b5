"""The screens of one server: those of pages, and those of terminals, which are kept while a line is lost.

Specified in ``docs/reference/connect.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from cockpit.access.principals import Caller
from cockpit.api.web.screen_messages import (
    FULL,
    GOING_AWAY,
    KEEP_S,
    MALFORMED,
    REPLACED,
    REVOKED,
    Hello,
    Message,
    Opened,
    Refused,
)
from cockpit.api.web.screen_terminal import ScreenTerminal
from cockpit.api.web.shown_screen import ShownScreen, close_line
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import decode_json

MOST_SCREENS = 8
"""Screens at the same time, with those that are kept."""
CHECK_S = 5.0
"""Seconds between two looks whether a terminal's token is still valid."""

Check = Callable[[], Awaitable[Caller]]
Note = Callable[[bool], Awaitable[None]]
T = TypeVar("T")


class Screens:
    """All screens. ``open_terminal`` starts one for the terminal of a :class:`Hello`."""

    def __init__(
        self,
        open_terminal: Callable[[Hello], ScreenTerminal],
        *,
        keep_s: float = KEEP_S,
        check_s: float = CHECK_S,
    ) -> None:
        self._open = open_terminal
        self._keep_s, self._check_s = keep_s, check_s
        self._screens: dict[str, ShownScreen] = {}
        self._expiries: dict[str, asyncio.Task[None]] = {}
        self._lines: set[asyncio.Task[int | None]] = set()
        self._ending = 0

    async def serve_page(self, socket: WebSocket) -> None:
        """Show a screen in a tab of a browser until the tab, the screen or the server ends."""
        await socket.accept()
        await self._follow(socket, self._run_page(socket))

    async def serve_terminal(
        self, socket: WebSocket, caller: Caller, check: Check, note: Note, protocol: str
    ) -> None:
        """Show a screen on a terminal, of a ``caller`` whom ``check`` finds again or refuses.

        ``note`` is called before it is shown, with whether it was kept for this terminal.
        """
        await socket.accept(protocol)
        await self._follow(socket, self._run_terminal(socket, caller, check, note))

    async def close(self) -> None:
        """End every screen, and wait for the programs."""
        tasks = [*self._lines, *self._expiries.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(self._end(screen) for screen in list(self._screens.values())))
        for expiry in self._expiries.values():
            expiry.cancel()

    async def _follow(self, socket: WebSocket, running: Coroutine[Any, Any, int | None]) -> None:
        line = asyncio.create_task(running)
        self._lines.add(line)
        try:
            await asyncio.wait((line,))
        finally:
            self._lines.discard(line)
        await close_line(socket, GOING_AWAY if line.cancelled() else line.result())

    async def _run_page(self, socket: WebSocket) -> int | None:
        try:
            first = await _receive(socket, Message)
        except WebSocketDisconnect:
            return None
        if first is None or first.size is None:
            return MALFORMED
        if self._is_full:
            return FULL
        screen = self._start(Hello(size=first.size), "")
        try:
            return await screen.show(socket, lambda: _receive(socket, Message), first.size)
        finally:
            await asyncio.shield(self._end(screen))

    async def _run_terminal(
        self, socket: WebSocket, caller: Caller, check: Check, note: Note
    ) -> int | None:
        try:
            hello = await _receive(socket, Hello)
        except WebSocketDisconnect:
            return None
        if hello is None:
            return MALFORMED
        screen = self._screens.get(hello.screen)
        is_kept = screen is not None and screen.owner == caller.cap_id
        if screen is not None and is_kept:
            if (expiry := self._expiries.pop(screen.name, None)) is not None:
                expiry.cancel()
        elif self._is_full:
            return FULL
        else:
            screen = self._start(hello, caller.cap_id)
        code: int | None = None
        try:
            await note(is_kept)
            await socket.send_text(msgspec.json.encode(Opened(screen.name, is_kept)).decode())
            code = await self._show_while_valid(socket, screen, hello, check, again=is_kept)
        except WebSocketDisconnect:
            code = None
        finally:
            if code is None:
                self._expiries[screen.name] = asyncio.create_task(self._expire(screen))
            elif code != REPLACED:
                await asyncio.shield(self._end(screen))
        return code

    async def _show_while_valid(
        self, socket: WebSocket, screen: ShownScreen, hello: Hello, check: Check, *, again: bool
    ) -> int | None:
        showing = asyncio.create_task(
            screen.show(socket, lambda: _receive(socket, Message), hello.size, again=again)
        )
        try:
            while not showing.done():
                await asyncio.wait((showing,), timeout=self._check_s)
                try:
                    await check()
                except CockpitError as error:
                    if not showing.done():
                        with suppress(WebSocketDisconnect):
                            await socket.send_text(
                                msgspec.json.encode(Refused(str(error))).decode()
                            )
                        return REVOKED
            return await showing
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)

    @property
    def _is_full(self) -> bool:
        return len(self._screens) + self._ending >= MOST_SCREENS

    def _start(self, hello: Hello, owner: str) -> ShownScreen:
        screen = ShownScreen(self._open(hello), owner)
        self._screens[screen.name] = screen
        return screen

    async def _expire(self, screen: ShownScreen) -> None:
        await asyncio.sleep(self._keep_s)
        self._expiries.pop(screen.name, None)
        if not screen.is_shown:
            await self._end(screen)

    async def _end(self, screen: ShownScreen) -> None:
        if self._screens.pop(screen.name, None) is None:
            return
        self._ending += 1
        try:
            await screen.terminal.close()
        finally:
            self._ending -= 1


async def _receive(socket: WebSocket, kind: type[T]) -> T | None:
    """Return a terminal's next message; None for what none sends. Raises ``WebSocketDisconnect``."""
    event = await socket.receive()
    if event["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(event.get("code", 1006))
    try:
        return decode_json(event.get("text") or "", kind)
    except (msgspec.DecodeError, UnicodeError):
        return None

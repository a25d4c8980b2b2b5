"""What a browser is served: a link, the page and its files, and a terminal for each tab.

Specified in ``docs/reference/web.md``.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from cockpit.api.problem_documents import problem
from cockpit.api.web.browser_logins import COOKIE, BrowserLogins
from cockpit.api.web.screen_terminal import DoesNotRead, ScreenTerminal

MOST_SCREENS = 8
"""Tabs with a screen at the same time."""
LARGEST_MESSAGE = 65_536
"""Bytes of one message of a page."""
LATE_S = 0.5
"""Keys are dropped if the page had not drawn what was sent to it so many seconds before they came.

cockpit lets no proposal be approved before it has been on the terminal for as long. So none is approved that
the browser, on a slow line, had not drawn yet.
"""
GOING_AWAY = 1001
ENDED, FULL, STUCK, MALFORMED = 4001, 4002, 4003, 4004
"""Why the server closed a tab's terminal: its program ended, there are too many, it reads no keys, and a
message that no page sends."""

_FOLDER = Path(__file__).resolve().parents[2] / "data" / "web"
_FILES = {
    "": ("page.html", "text/html"),
    "page.js": ("page.js", "text/javascript"),
    "page.css": ("page.css", "text/css"),
    "xterm.js": ("xterm.js", "text/javascript"),
    "addon-fit.js": ("addon-fit.js", "text/javascript"),
    "addon-unicode11.js": ("addon-unicode11.js", "text/javascript"),
    "xterm.css": ("xterm.css", "text/css"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
# xterm.js writes the style sheet of its rows itself. No script is inline.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self';"
    " img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# What a terminal answers by itself: focus, positions, attributes, modes, colours.
_REPORTS = re.compile(
    r"(?:\x1b\[(?:[IO]|\d+;\d+R|[?>][\d;]*(?:\$y|[cnu])|\d[\d;]*[nt])|\x1b[P\]][^\x07\x1b]*(?:\x07|\x1b\\))+"
)


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """What a page sends: keys with the count of bytes that it had drawn, or a new size."""

    keys: str = ""
    seen: Annotated[int, msgspec.Meta(ge=0)] = 0
    size: (
        tuple[
            Annotated[int, msgspec.Meta(ge=2, le=1_000)],
            Annotated[int, msgspec.Meta(ge=2, le=1_000)],
        ]
        | None
    ) = None


class DrawnOutput:
    """How far behind a page is: what was sent to it, and when. ``monotonic`` gives seconds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._now = monotonic
        self._sent = 0
        self._pieces: deque[tuple[int, float]] = deque()

    def add(self, size: int) -> None:
        """Note that ``size`` bytes are sent now."""
        self._sent += size
        self._pieces.append((self._sent, self._now()))

    def is_late(self, seen: int) -> bool:
        """Whether something is missing in the first ``seen`` bytes that was sent :data:`LATE_S` ago."""
        while self._pieces and self._pieces[0][0] <= seen:
            self._pieces.popleft()
        return bool(self._pieces) and self._now() - self._pieces[0][1] >= LATE_S


class Screens:
    """The terminals of all tabs. ``open_terminal`` starts one of a size in columns and rows."""

    def __init__(
        self, logins: BrowserLogins, open_terminal: Callable[[tuple[int, int]], ScreenTerminal]
    ) -> None:
        self.logins = logins
        self._open = open_terminal
        self._tabs: set[asyncio.Task[int | None]] = set()

    async def serve(self, socket: WebSocket) -> None:
        """Serve one tab until it, its program or the server ends."""
        if not is_known(socket, self.logins):
            await socket.send_denial_response(_refusal())
            return
        await socket.accept()
        if len(self._tabs) >= MOST_SCREENS:
            await socket.close(FULL)
            return
        tab = asyncio.create_task(self._run(socket))
        self._tabs.add(tab)
        try:
            await asyncio.wait((tab,))
        finally:
            self._tabs.discard(tab)
        code = GOING_AWAY if tab.cancelled() else tab.result()
        if code is not None:
            with suppress(WebSocketDisconnect):
                await socket.close(code)

    async def close(self) -> None:
        """Close every terminal, and wait for the programs."""
        tabs = list(self._tabs)
        for tab in tabs:
            tab.cancel()
        await asyncio.gather(*tabs, return_exceptions=True)

    async def _run(self, socket: WebSocket) -> int | None:
        try:
            first = await _receive(socket)
        except WebSocketDisconnect:
            return None
        if first is None or first.size is None:
            return MALFORMED
        terminal = self._open(first.size)
        drawn = DrawnOutput()
        shown = asyncio.create_task(_show(terminal, socket, drawn))
        pressed = asyncio.create_task(_press(terminal, socket, drawn))
        try:
            await asyncio.wait((shown, pressed), return_when=asyncio.FIRST_COMPLETED)
            ended = pressed if pressed.done() else shown
            return await ended
        except WebSocketDisconnect:
            return None
        finally:
            shown.cancel()
            pressed.cancel()
            await asyncio.gather(shown, pressed, return_exceptions=True)
            await asyncio.shield(terminal.close())


async def _show(terminal: ScreenTerminal, socket: WebSocket, drawn: DrawnOutput) -> int | None:
    while output := await terminal.read():
        drawn.add(len(output))
        await socket.send_bytes(output)
    return ENDED


async def _press(terminal: ScreenTerminal, socket: WebSocket, drawn: DrawnOutput) -> int | None:
    while True:
        message = await _receive(socket)
        if message is None:
            return MALFORMED
        if message.size is not None:
            terminal.resize(message.size)
        if message.keys:
            if drawn.is_late(message.seen) and not _REPORTS.fullmatch(message.keys):
                await socket.send_text('{"late":true}')
                continue
            try:
                await terminal.write(message.keys.encode("utf-8", "replace"))
            except DoesNotRead:
                return STUCK


async def _receive(socket: WebSocket) -> Message | None:
    """Return a tab's next message; None for what no page sends. Raises ``WebSocketDisconnect``."""
    event = await socket.receive()
    if event["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(event.get("code", 1006))
    try:
        return msgspec.json.decode(event.get("text") or "", type=Message)
    except (msgspec.DecodeError, UnicodeError):
        return None


def is_known(connection: HTTPConnection, logins: BrowserLogins) -> bool:
    """Whether a request comes with the cookie of the folder that it asks in."""
    return logins.accepts(connection.path_params["folder"], connection.cookies.get(COOKIE, ""))


def _refusal() -> Response:
    return problem("token_missing", "Open the link that `cockpit web` printed; each works once.")


def web_application(screens: Screens, tell_used: Callable[[], None], *, secure: bool) -> Starlette:
    """Return the routes. ``tell_used`` is called when a link was used; ``secure`` is for cookies over TLS."""
    logins = screens.logins

    async def follow_link(request: Request) -> Response:
        login = None
        if request.method == "GET":  # what only looks must not use the link up
            login = logins.redeem(request.path_params["token"])
        if login is None:
            return problem(
                "token_unknown",
                "This link does not work, or no more. `cockpit web` printed the one that works.",
                headers=_HEADERS,
            )
        tell_used()
        page = f"/s/{login.folder}/"
        answer = RedirectResponse(page, 303, _HEADERS)
        answer.set_cookie(
            COOKIE, login.cookie, path=page, httponly=True, samesite="strict", secure=secure
        )
        return answer

    async def show_file(request: Request) -> Response:
        if not is_known(request, logins):
            return _refusal()
        entry = _FILES.get(request.path_params["file"])
        if entry is None:
            return problem("not_found", f"There is no {request.url.path} here.")
        name, media_type = entry
        return FileResponse(_FOLDER / name, media_type=media_type, headers=_HEADERS)

    async def refuse(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and error.status_code == 405:
            return problem("method_not_allowed", "Only GET is served here.")
        return _refusal()

    return Starlette(
        routes=[
            Route("/open/{token}", follow_link),
            WebSocketRoute("/s/{folder}/screen", screens.serve),
            Route("/s/{folder}/{file:path}", show_file),
        ],
        exception_handlers={HTTPException: refuse},
    )

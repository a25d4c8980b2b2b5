"""What a browser is served: a link, the page and its files, and a terminal for each tab.

Links work once; what they open is for the cookies of one folder of addresses. A browser sends a cookie to
every port of a host. A login's cookie therefore belongs to a folder that only the browser knows which
followed the link: another server on this machine is never sent it. Specified in ``docs/reference/web.md``.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from cockpit.api.problem_documents import problem
from cockpit.api.web.screens import Screens

COOKIE = "cockpit_screen"
MOST_LOGINS = 64
"""Browsers of one server; the oldest login ends when there is one more."""
_BYTES = 32
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


@dataclass(frozen=True, slots=True)
class Login:
    """A browser that followed a link: its folder of addresses, and its cookie's value."""

    folder: str
    cookie: str = field(repr=False)


class BrowserLogins:
    """The one link that works now, and the logins of those before it."""

    def __init__(self) -> None:
        self._link = secrets.token_urlsafe(_BYTES)
        self._logins: dict[str, Login] = {}

    @property
    def link(self) -> str:
        """The token of the link that works now."""
        return self._link

    def redeem(self, token: str) -> Login | None:
        """Return a new login for the link's token, which works no more; None for any other token."""
        if not _equal(token, self._link):
            return None
        self._link = secrets.token_urlsafe(_BYTES)
        login = Login(secrets.token_urlsafe(_BYTES // 2), secrets.token_urlsafe(_BYTES))
        while len(self._logins) >= MOST_LOGINS:
            del self._logins[next(iter(self._logins))]
        self._logins[login.folder] = login
        return login

    def accepts(self, folder: str, cookie: str) -> bool:
        """Whether the cookie is that of the folder's login."""
        login = self._logins.get(folder)
        return login is not None and _equal(cookie, login.cookie)


def _equal(given: str, kept: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), kept.encode())


def is_known(connection: HTTPConnection, logins: BrowserLogins) -> bool:
    """Whether a request comes with the cookie of the folder that it asks in."""
    return logins.accepts(connection.path_params["folder"], connection.cookies.get(COOKIE, ""))


def _refusal() -> Response:
    return problem("token_missing", "Open the link that `cockpit web` printed; each works once.")


def web_application(
    screens: Screens,
    logins: BrowserLogins,
    tell_used: Callable[[], None],
    *,
    secure: bool,
) -> Starlette:
    """Return the routes. ``tell_used`` is called when a link was used; ``secure`` is for cookies over TLS."""

    async def show_in_page(socket: WebSocket) -> None:
        if is_known(socket, logins):
            await screens.serve(socket)
        else:
            await socket.send_denial_response(_refusal())

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
            WebSocketRoute("/s/{folder}/screen", show_in_page),
            Route("/s/{folder}/{file:path}", show_file),
        ],
        exception_handlers={HTTPException: refuse},
    )

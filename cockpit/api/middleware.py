"""The gate before every route: it checks Host, Origin, content type, size and speed of a request.

See ``docs/reference/security.md``.
"""

from __future__ import annotations

import asyncio
import sys
import traceback

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cockpit.access.listen_address import Address
from cockpit.api.problem_documents import problem
from cockpit.core.secrets import mask
from cockpit.store.journal.refused_requests import RefusedRequests

LARGEST_BODY = 1_000_000
PATIENCE_S = 10.0
_DRAINED = 4
"""So many times the largest body is read and thrown away, so that its sender hears why."""
_READS = ("GET", "HEAD", "OPTIONS")
_SEALED = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


class Gate:
    """An ASGI application around ``app``. ``patience_s`` is what a client has to send its body.

    ``refused`` journals pages of another origin. With ``sockets`` pages of this origin may open
    WebSockets.
    """

    def __init__(
        self,
        app: ASGIApp,
        address: Address,
        *,
        patience_s: float = PATIENCE_S,
        refused: RefusedRequests | None = None,
        sockets: bool = False,
    ) -> None:
        self._app = app
        self._sockets = sockets
        self._log = refused
        self._hosts = frozenset(address.hosts)
        self._origins = frozenset(address.origins)
        self._patience_s = patience_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket" and self._sockets and self._may_open_socket(scope):
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # Closing before accepting is how a handshake is refused.
            await send({"type": "websocket.close", "code": 1008})
            return
        sealed = _sealing(send)
        refused = self._refused(scope)
        body = b""
        if refused is None and scope["method"] not in _READS:
            refused, body = await self._body(scope, receive)
        if refused is not None:
            if self._log is not None and refused.status_code == 403:
                await self._log.add(
                    "origin_refused",
                    "A page of another origin was refused.",
                    f"{scope['method']} {scope['path']}",
                )
            await refused(scope, receive, sealed)
            return
        try:
            await self._app(scope, _replaying(body, receive), sealed)
        except Exception as error:
            # The application has answered 500; what it was belongs into the server's log.
            print(mask("".join(traceback.format_exception(error))), file=sys.stderr)  # noqa: T201 - the server's log

    def _may_open_socket(self, scope: Scope) -> bool:
        """Whether a page of this origin opens a WebSocket: browsers name the origin."""
        hosts, origins = _headers(scope, b"host"), _headers(scope, b"origin")
        return (
            len(hosts) == len(origins) == 1
            and hosts[0].casefold() in self._hosts
            and origins[0].casefold() in self._origins
        )

    def _refused(self, scope: Scope) -> Response | None:
        hosts = _headers(scope, b"host")
        if len(hosts) != 1 or hosts[0].casefold() not in self._hosts:
            return problem(
                "host_refused",
                "This server does not serve that Host. Use the address that it printed.",
            )
        if any(origin.casefold() not in self._origins for origin in _headers(scope, b"origin")):
            return problem("origin_refused", "Pages of another origin are not served.")
        kinds = _headers(scope, b"content-type")
        if scope["method"] not in _READS and not all(_is_json(kind) for kind in kinds):
            return problem("not_json", "A body must be application/json.")
        return None

    async def _body(self, scope: Scope, receive: Receive) -> tuple[Response | None, bytes]:
        """The whole body, or why it is refused."""
        too_large = f"A body may have {LARGEST_BODY:,} bytes at most."
        lengths = _headers(scope, b"content-length")
        if lengths and int(lengths[0]) > LARGEST_BODY * _DRAINED:
            return problem("too_large", too_large, headers={"Connection": "close"}), b""
        chunks, size, more = [], 0, True
        try:
            async with asyncio.timeout(self._patience_s):
                while more and size <= LARGEST_BODY * _DRAINED:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        # Half a decision is none: an empty body would be a whole one.
                        return problem("malformed", "The body ended before its end."), b""
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size <= LARGEST_BODY:
                        chunks.append(chunk)
                    more = message.get("more_body", False)
        except TimeoutError:
            detail = f"The body did not arrive within {self._patience_s:g} seconds."
            return problem("too_slow", detail, headers={"Connection": "close"}), b""
        if size > LARGEST_BODY:
            return problem("too_large", too_large, headers={"Connection": "close"}), b""
        if size and not _headers(scope, b"content-type"):
            return problem("not_json", "A body must be application/json, and say so."), b""
        return None, b"".join(chunks)


def _replaying(body: bytes, receive: Receive) -> Receive:
    """The body as one message; after it, what the client does next."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _sealing(send: Send) -> Send:
    async def sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *_SEALED]}
        await send(message)

    return sealed


def _headers(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key == name]


def _is_json(kind: str) -> bool:
    return kind.partition(";")[0].strip().casefold() == "application/json"

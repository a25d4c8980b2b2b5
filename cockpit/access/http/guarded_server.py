"""A server from its start to its end: one address, limits for its connections, TLS.

``cockpit serve`` and ``cockpit web`` listen with it. See ``docs/reference/http.md``, limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import uvicorn
from starlette.types import ASGIApp

from cockpit.access.http.guarded_protocol import IDLE_S, GuardedProtocol
from cockpit.access.listen_address import (
    Address,
    CannotListen,
    listening,
    listening_at,
    remove_socket,
)

_LEAVE_S = 2
"""Seconds that answers have to end, once the server ends."""
HANDSHAKE_S = 5.0
"""Seconds for the handshake of TLS."""
_PING_S = 20.0
"""Seconds between two questions whether the other end of a WebSocket is there, and for its answer."""


class Listening(msgspec.Struct, frozen=True):
    """Where a server listens: a host and a port, with a certificate over TLS, or a Unix socket."""

    host: str = "127.0.0.1"
    port: int = 8787
    path: Path | None = None
    """The Unix socket; host and port do not count then."""
    certificate: Path | None = None
    key: Path | None = None
    """The certificate's private key; None: it is in the certificate's file."""


def guarded_config(
    app: ASGIApp,
    *,
    log_level: str,
    largest_message: int = 0,
    lifespan: Literal["auto", "off"] = "off",
) -> uvicorn.Config:
    """Return how ``app`` is served. ``largest_message``: bytes of a WebSocket's message; 0 serves none.

    ``lifespan``: whether the application hears of the server's start and end.
    """
    sockets: dict[str, Any] = {"ws": "none"}
    if largest_message:
        sockets = {
            "ws": "websockets-sansio",
            "ws_max_size": largest_message,
            "ws_ping_interval": _PING_S,
            "ws_ping_timeout": _PING_S,
            "ws_per_message_deflate": False,
        }
    return uvicorn.Config(
        app,
        http=GuardedProtocol,
        timeout_keep_alive=IDLE_S,
        log_level=log_level,
        access_log=False,
        timeout_graceful_shutdown=_LEAVE_S,
        server_header=False,
        proxy_headers=False,
        lifespan=lifespan,
        **sockets,
    )


async def _do_nothing() -> None:
    pass


class GuardedServer(uvicorn.Server):
    """uvicorn's server, with a limit for handshakes.

    ``before_end`` and ``after_end`` are awaited before answers are let to their end, and after it. Here,
    because the signal that ends the server interrupts whatever is awaited after it.
    """

    protocol: type[GuardedProtocol] = GuardedProtocol
    handshake_s: float = HANDSHAKE_S

    def __init__(
        self,
        config: uvicorn.Config,
        context: ssl.SSLContext | None = None,
        *,
        before_end: Callable[[], Awaitable[None]] = _do_nothing,
        after_end: Callable[[], Awaitable[None]] = _do_nothing,
    ) -> None:
        super().__init__(config)
        self._context = context
        self._before_end = before_end
        self._after_end = after_end

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let answers end, and stop."""
        await self._before_end()
        await super().shutdown(sockets)
        await self._after_end()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on the sockets."""
        loop = asyncio.get_running_loop()

        def create_protocol() -> GuardedProtocol:
            return self.protocol(self.config, self.server_state, {}, loop)

        timeout = None if self._context is None else self.handshake_s
        self.servers = [
            await loop.create_server(
                create_protocol,
                sock=each,
                ssl=self._context,
                ssl_handshake_timeout=timeout,
                backlog=self.config.backlog,
            )
            for each in sockets or ()
        ]
        self.started = True


@contextlib.contextmanager
def open_listener(where: Listening, *, tls: bool) -> Iterator[tuple[socket.socket, Address]]:
    """Listen while the block runs. Raises ``CannotListen``."""
    if where.path is None:
        listener, address = listening(where.host, where.port, tls=tls)
        with listener:
            yield listener, address
        return
    listener, address = listening_at(where.path)
    try:
        with listener:
            yield listener, address
    finally:
        remove_socket(where.path)


def load_certificate(where: Listening) -> ssl.SSLContext | None:
    """Return what TLS is served with; None for plain HTTP. Raises ``CannotListen``."""
    if where.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(where.certificate, where.key, password=_refuse_password)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise CannotListen(
            f"The certificate {where.certificate} cannot be used: {error}. --tls-cert names a PEM file with"
            " it, --tls-key the file with its key."
        ) from error
    return context


def _refuse_password() -> str:
    raise ValueError("its key has a password")

"""The server from its start to its end: one address, the gate, the application.

See ``docs/reference/http.md``.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from cockpit.access.http.guarded_protocol import IDLE_S, LARGEST_HEAD, GuardedProtocol
from cockpit.access.listen_address import (
    Address,
    CannotListen,
    listening,
    listening_at,
    remove_socket,
)
from cockpit.access.user_presence import shield_process
from cockpit.api.application import application
from cockpit.api.journal_stream import JournalStream
from cockpit.api.middleware import Gate
from cockpit.api.served_project import ServedProject
from cockpit.chains.watch_dead_chains import watching_dead_chains
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.views.recorded import recorded
from cockpit.store.db.database import Store
from cockpit.store.journal.refused_requests import RefusedRequests

_LEAVE_S = 2
HANDSHAKE_S = 5.0
"""Seconds for the handshake of TLS."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a server listens: a host and a port, with a certificate over TLS, or a Unix socket."""

    host: str = "127.0.0.1"
    port: int = 8787
    path: Path | None = None
    """The Unix socket; host and port do not count then."""
    certificate: Path | None = None
    key: Path | None = None
    """The certificate's private key; None: it is in the certificate's file."""


async def serve(
    store: Store,
    settings: RuntimeSettings,
    where: Listening,
    tell: Callable[[Address], None],
    place: ProjectPaths | None = None,
) -> None:
    """Serve until it is interrupted; ``tell`` is called with the address. Raises ``CannotListen``.

    ``place`` is the checkout that sessions work in; without one no session is run.
    """
    shield_process()
    context = load_certificate(where)
    refused = RefusedRequests(store, "http")
    project = ServedProject(store, settings, place)
    with _open(where, tls=context is not None) as (listener, address):
        app = application(store, settings, refused, project)
        config = uvicorn.Config(
            Gate(app, address, refused=refused),
            http=GuardedProtocol,
            h11_max_incomplete_event_size=LARGEST_HEAD,
            timeout_keep_alive=IDLE_S,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=_LEAVE_S,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
        )
        async with (
            recorded(store, settings),
            refused.flushing(),
            watching_dead_chains(store),
        ):
            tell(address)
            await Server(config, context, app.state.stream, project).serve(sockets=[listener])


class GuardedServer(uvicorn.Server):
    """uvicorn's server, with a limit for handshakes."""

    protocol: type[GuardedProtocol] = GuardedProtocol
    handshake_s: float = HANDSHAKE_S

    def __init__(self, config: uvicorn.Config, context: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._context = context

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


class Server(GuardedServer):
    """The guarded server, with streams and sessions that end with it."""

    def __init__(
        self,
        config: uvicorn.Config,
        context: ssl.SSLContext | None,
        stream: JournalStream,
        project: ServedProject,
    ) -> None:
        super().__init__(config, context)
        self._project = project
        self._stream = stream

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams and sessions, let answers end, and stop.

        Here, because the signal that ends the server interrupts whatever is awaited after this.
        """
        await self._stream.close()
        await super().shutdown(sockets)
        await self._project.close()


@contextlib.contextmanager
def _open(where: Listening, *, tls: bool) -> Iterator[tuple[socket.socket, Address]]:
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
            f"The certificate {where.certificate} cannot be used: {error}. Give its key with --tls-key."
        ) from error
    return context


def _refuse_password() -> str:
    raise ValueError("its key has a password")

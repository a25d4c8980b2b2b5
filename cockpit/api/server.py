"""The server of ``cockpit serve``: the application behind the gate.

See ``docs/reference/http.md``.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

import uvicorn

from cockpit.access.listen_address import Address
from cockpit.access.user_presence import shield_process
from cockpit.api.application import application
from cockpit.api.guarded_server import (
    GuardedServer,
    Listening,
    guarded_config,
    load_certificate,
    open_listener,
)
from cockpit.api.middleware import Gate
from cockpit.api.served_project import ServedProject
from cockpit.api.server_sent_events import JournalStream
from cockpit.chains.watch_unattended import watching_unattended
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.views.copy_journal import recorded
from cockpit.store.db.database import Store
from cockpit.store.journal.refused_requests import RefusedRequests


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
    with open_listener(where, tls=context is not None) as (listener, address):
        app = application(store, settings, refused, project)
        config = guarded_config(Gate(app, address, refused=refused), log_level="warning")
        async with (
            recorded(store, settings),
            refused.flushing(),
            watching_unattended(store),
        ):
            tell(address)
            await Server(config, context, app.state.stream, project).serve(sockets=[listener])


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

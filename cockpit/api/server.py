"""The server of ``cockpit serve``: the application behind the gate.

See ``docs/reference/http.md``.
"""

from __future__ import annotations

from collections.abc import Callable

from cockpit.access.http.guarded_server import (
    GuardedServer,
    Listening,
    guarded_config,
    load_certificate,
    open_listener,
)
from cockpit.access.listen_address import Address
from cockpit.access.user_presence import shield_process
from cockpit.api.application import application
from cockpit.api.middleware import Gate
from cockpit.api.served_project import ServedProject
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
            server = GuardedServer(
                config, context, before_end=app.state.stream.close, after_end=project.close
            )
            await server.serve(sockets=[listener])

"""The server from its start to its end: one address, the gate, the application."""

from __future__ import annotations

from collections.abc import Callable

import uvicorn

from cockpit.access.listen_address import listening
from cockpit.access.user_presence import shield_process
from cockpit.api.application import application
from cockpit.api.middleware import Gate
from cockpit.chains.watch_dead_chains import watching_dead_chains
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.views.log_lines import logged
from cockpit.store.db.database import Store
from cockpit.store.journal.refused_requests import RefusedRequests

_LEAVE_S = 2


async def serve(
    store: Store, settings: RuntimeSettings, host: str, port: int, tell: Callable[[str], None]
) -> None:
    """Serve until it is interrupted; ``tell`` is called with the address. Raises
    ``CannotListen``."""
    shield_process()
    listener, address = listening(host, port)
    refused = RefusedRequests(store, "http")
    with listener:
        config = uvicorn.Config(
            Gate(application(store, settings, refused), address, refused=refused),
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=_LEAVE_S,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
        )
        async with (
            logged(store, settings.log_json),
            refused.flushing(),
            watching_dead_chains(store),
        ):
            tell(address.url)
            await uvicorn.Server(config).serve(sockets=[listener])

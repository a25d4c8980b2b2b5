"""MCP over streamable HTTP: many clients, each with a token of its own.

On loopback unless an address is named. Host and Origin are checked against the address that is served,
so that no page in a browser reaches it under another name. Source: design of the faces.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from cockpit.access.capability_tokens import TokenRefused
from cockpit.access.listen_address import Address
from cockpit.mcp.callers import Guest
from cockpit.mcp.dispatcher import Desk

PATH = "/mcp"
LARGEST_BODY = 1_000_000
_LEAVE_S = 2


class Bearer:
    """Bearer tokens are the project's capability tokens."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def verify_token(self, token: str) -> AccessToken | None:
        """The holder of ``token``; None, and so a 401, when it opens nothing."""
        if not token.strip():
            return None
        try:
            caller = await self._desk.caller(Guest(secret=token))
        except TokenRefused:
            return None
        return AccessToken(
            token=token,
            client_id=caller.cap_id,
            scopes=sorted(caller.scopes),
            subject=caller.namespace,
        )


async def serve(
    server: Server[Any],
    desk: Desk,
    listener: socket.socket,
    address: Address,
    tell: Callable[[str], None],
) -> None:
    """Serve whoever comes to ``listener`` until it is interrupted; ``tell`` is called with the address."""
    with listener:
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            host=str(listener.getsockname()[0]),
            max_request_body_size=LARGEST_BODY,
            transport_security=TransportSecuritySettings(
                allowed_hosts=list(address.hosts), allowed_origins=list(address.origins)
            ),
            auth=AuthSettings(issuer_url=AnyHttpUrl(address.url), resource_server_url=None),
            token_verifier=Bearer(desk),
        )
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=_LEAVE_S,
            server_header=False,
        )
        tell(f"{address.url}{PATH}")
        await uvicorn.Server(config).serve(sockets=[listener])

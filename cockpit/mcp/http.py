"""MCP over streamable HTTP: many clients, each with a token of its own.

On loopback unless an address is named. Host and Origin are checked against the address that is served,
so that no page in a browser reaches it under another name. Source: design of the faces.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from cockpit.access.tokens import TokenRefused
from cockpit.mcp.callers import Guest
from cockpit.mcp.desk import Desk
from cockpit.store.errors import CockpitError

PATH = "/mcp"
LARGEST_BODY = 1_000_000
_LEAVE_S = 2
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class CannotListen(CockpitError):
    """The address cannot be served."""

    code = "usage"


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
    server: Server[Any], desk: Desk, host: str, port: int, tell: Callable[[str], None]
) -> None:
    """Serve until it is interrupted; ``tell`` is called with the address. Raises
    :class:`CannotListen`."""
    with _listening(host, port) as listener:
        bound = int(listener.getsockname()[1])
        shown = f"[{host}]" if ":" in host else host
        names = _LOOPBACK if _loopback(host) else (shown,)
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            host=host,
            max_request_body_size=LARGEST_BODY,
            transport_security=TransportSecuritySettings(
                allowed_hosts=[f"{name}:{bound}" for name in names],
                allowed_origins=[f"http://{name}:{bound}" for name in names],
            ),
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(f"http://{shown}:{bound}"), resource_server_url=None
            ),
            token_verifier=Bearer(desk),
        )
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=_LEAVE_S,
            server_header=False,
        )
        tell(f"http://{shown}:{bound}{PATH}")
        await uvicorn.Server(config).serve(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        if host in ("", "0.0.0.0", "::"):  # noqa: S104 - refused
            raise CannotListen(
                f"{host or 'An empty address'} is every address of this machine, and Host could not be"
                " checked. Name the one address at which clients reach it."
            )
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise CannotListen(
            f"{host}:{port} cannot be listened on: {error}. Choose another --port or --host."
        ) from error


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

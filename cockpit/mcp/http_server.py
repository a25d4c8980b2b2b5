"""MCP over streamable HTTP, which the SDK speaks: many clients, each with its own token.

It listens on loopback unless the user names an address. Host and Origin must be the served address, so
that no page in a browser reaches the server under another name. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from cockpit import __version__
from cockpit.access.capability_tokens import TokenRefused
from cockpit.access.http.guarded_server import guarded_config
from cockpit.access.listen_address import Address
from cockpit.mcp.answer_call import INSTRUCTIONS, ToolServer, identify_client
from cockpit.mcp.call_dispatcher import ClientConnection, Dispatcher

PATH = "/mcp"
MAX_BODY_BYTES = 1_000_000


class BearerTokens:
    """Verifies bearer tokens, which are the project's capability tokens."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the principal of ``token``, or None for an invalid one, which becomes a 401."""
        if not token.strip():
            return None
        try:
            caller = await self._dispatcher.authenticate(ClientConnection(token=token))
        except TokenRefused as error:
            await self._dispatcher.refused.add(error.code, str(error), f"POST {PATH}")
            return None
        return AccessToken(
            token=token,
            client_id=caller.cap_id,
            scopes=sorted(caller.scopes),
            subject=caller.namespace,
        )


async def serve(
    tools: ToolServer,
    dispatcher: Dispatcher,
    listener: socket.socket,
    address: Address,
    announce: Callable[[str], None],
) -> None:
    """Serve clients on ``listener`` until interrupted; ``announce`` is called with the address."""
    with listener:
        app = _create_server(tools).streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            host=str(listener.getsockname()[0]),
            max_request_body_size=MAX_BODY_BYTES,
            transport_security=TransportSecuritySettings(
                allowed_hosts=list(address.hosts), allowed_origins=list(address.origins)
            ),
            auth=AuthSettings(issuer_url=AnyHttpUrl(address.url), resource_server_url=None),
            token_verifier=BearerTokens(dispatcher),
        )
        announce(f"{address.url}{PATH}")
        server = uvicorn.Server(guarded_config(app, log_level="warning", lifespan="auto"))
        await server.serve(sockets=[listener])


def _create_server(tools: ToolServer) -> Server[Any]:
    """Create the SDK's low-level server of ``tools``: the high-level one writes schemas of its own."""

    async def list_tools(ctx: ServerRequestContext[Any], params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool.model_validate(tool) for tool in tools.list_tools()]
        )

    async def call_tool(
        ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        client = _identify_client(ctx)
        text, is_error = await tools.call(params.name, client, params.arguments)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], is_error=is_error
        )

    return Server(
        "cockpit",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _identify_client(ctx: ServerRequestContext[Any]) -> ClientConnection:
    params = ctx.session.client_params
    bearer = get_access_token()
    headers = getattr(ctx.request, "headers", None)
    return identify_client(
        bearer.token if bearer else "",
        params.client_info.name if params else "",
        "" if headers is None else str(headers.get("mcp-session-id", "")),
    )

"""The SDK's protocol server over the tools: every HTTP client, and unusual ones on standard input.

It uses the SDK's low-level server, because the high-level one writes schemas of its own. The SDK takes
most of a second and 40 MiB to load, so that :mod:`cockpit.mcp.plain_protocol` imports this module only
when a client sends a message that it does not answer itself. See ``docs/reference/mcp.md``.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from cockpit import __version__
from cockpit.mcp.answer_call import INSTRUCTIONS, ToolServer, identify_client
from cockpit.mcp.client_connection import ClientConnection


def create_server(tools: ToolServer, token: str = "") -> Server[Any]:
    """Create a server of ``tools``. ``token`` is that of a client that cannot send one."""

    async def list_tools(ctx: ServerRequestContext[Any], params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool.model_validate(tool) for tool in tools.list_tools()]
        )

    async def call_tool(
        ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        client = _identify_client(ctx, token)
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


def _identify_client(ctx: ServerRequestContext[Any], token: str) -> ClientConnection:
    params = ctx.session.client_params
    bearer = get_access_token()
    headers = getattr(ctx.request, "headers", None)
    return identify_client(
        bearer.token if bearer else token,
        params.client_info.name if params else "",
        "" if headers is None else str(headers.get("mcp-session-id", "")),
    )

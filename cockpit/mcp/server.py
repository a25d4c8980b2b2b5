"""The protocol server: lists tools, runs calls, and turns errors into messages that say what to do.

It uses the SDK's low-level server, because the high-level one writes schemas of its own. Only a starting
server imports this module: the SDK takes most of a second to load. See ``docs/reference/mcp.md``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from typing import Any

import mcp_types as types
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from cockpit import __version__
from cockpit.backlog.tools.work_tool import Tier
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import record_schema
from cockpit.core.secrets import mask
from cockpit.mcp.client_connection import ClientConnection
from cockpit.mcp.dispatcher import Dispatcher
from cockpit.mcp.tool_registry import TOOLS, tools_in_tier

INSTRUCTIONS = (
    "cockpit keeps this project's tasks, work in progress and handoffs, and is its one gate for reading"
    " and acting: you propose, the user decides. Begin with get_session_context."
)
_MAX_NAME = 40
_MAX_ERROR = 2_000
"""Characters of an error: it may quote an argument of any length."""


def create_server(dispatcher: Dispatcher, tier: Tier, token: str = "") -> Server[Any]:
    """Create a server of the tools in ``tier``. ``token`` is that of a client that cannot send one."""
    offered = {tool.name: tool for tool in tools_in_tier(tier)}
    listing = types.ListToolsResult(
        tools=[
            types.Tool(
                name=tool.name,
                description=tool.description,
                input_schema=record_schema(tool.parameters),
            )
            for tool in offered.values()
        ]
    )

    async def list_tools(ctx: ServerRequestContext[Any], params: Any) -> types.ListToolsResult:
        return listing

    async def call_tool(
        ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = offered.get(params.name)
        if tool is None:
            return _error_result(_unknown_tool(params.name, tier))
        try:
            answer = await dispatcher.call(tool, _identify_client(ctx, token), params.arguments)
        except CockpitError as error:
            await dispatcher.refused.add(error.code, str(error), tool.name)
            return _error_result(str(error))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            print(mask("".join(traceback.format_exception(error))), file=sys.stderr)  # noqa: T201 - the log of a stdio server
            return _error_result(
                f"{tool.name} failed unexpectedly ({type(error).__name__}). Try it once more; if it"
                " fails again, tell the user: the server's log has the details."
            )
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    return Server(
        "cockpit",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _identify_client(ctx: ServerRequestContext[Any], token: str) -> ClientConnection:
    """Identify who calls, by the token alone; the client's own name is only shown."""
    params = ctx.session.client_params
    name = "".join(c for c in params.client_info.name if c.isprintable()) if params else ""
    bearer = get_access_token()
    headers = getattr(ctx.request, "headers", None)
    return ClientConnection(
        token=bearer.token if bearer else token,
        name=mask(name.strip()[:_MAX_NAME]) or "agent",
        http_session="" if headers is None else str(headers.get("mcp-session-id", "")),
    )


def _error_result(message: str) -> types.CallToolResult:
    if len(message) > _MAX_ERROR:
        message = f"{message[: _MAX_ERROR // 2]} … {message[-_MAX_ERROR // 2 :]}"
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=mask(message))], is_error=True
    )


def _unknown_tool(name: str, tier: Tier) -> str:
    for tool in TOOLS:
        if tool.name == name:
            return (
                f"{name} is not in tier {tier}: start the server with"
                f" `cockpit mcp --tier {tool.tier}`."
            )
    names = ", ".join(tool.name for tool in tools_in_tier(tier))
    return f"There is no tool {name[:60]!r}. The tools are: {names}."

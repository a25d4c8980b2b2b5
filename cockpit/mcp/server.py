"""The protocol: lists of tools that cost few tokens, calls, and errors that say what to do.

The SDK's low-level server, because the high-level one writes schemas of its own. Imported when a server
starts and by nothing else: the SDK takes most of a second to load.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from cockpit import __version__
from cockpit.backlog.tools.work_tool import Tier
from cockpit.core.errors import CockpitError
from cockpit.core.secrets import mask
from cockpit.mcp.callers import Guest
from cockpit.mcp.dispatcher import TIERS, Desk, Tool

INSTRUCTIONS = (
    "Tasks, work in progress and handoffs of this project, and its one gate for reading and acting: "
    "you propose, a person decides. Begin with get_session_context."
)
_NAME = 40
_WORDS = 2_000
"""Characters of an error: it may quote what it refuses, and that may be of any length."""


def made(desk: Desk, tools: Sequence[Tool], tier: Tier, secret: str = "") -> Server[Any]:
    """A server of the tools in ``tier``. ``secret`` is the token of a client that cannot send one."""
    offered = {tool.name: tool for tool in tools if TIERS.index(tool.tier) <= TIERS.index(tier)}
    elsewhere = {tool.name: tool.tier for tool in tools if tool.name not in offered}
    listed = types.ListToolsResult(
        tools=[
            types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema)
            for tool in offered.values()
        ]
    )

    async def list_tools(ctx: ServerRequestContext[Any], params: Any) -> types.ListToolsResult:
        return listed

    async def call_tool(
        ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = offered.get(params.name)
        if tool is None:
            return _failed(_unknown(params.name, offered, elsewhere))
        try:
            answer = await desk.call(tool, _guest(ctx, secret), params.arguments)
        except CockpitError as error:
            return _failed(str(error))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            print(mask("".join(traceback.format_exception(error))), file=sys.stderr)  # noqa: T201 - the log of a stdio server
            return _failed(
                f"{tool.name} failed unexpectedly ({type(error).__name__}). Try it once more; if it"
                " fails again, tell the person: the server's log has the details."
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


def _guest(ctx: ServerRequestContext[Any], secret: str) -> Guest:
    """Who calls: never by what a payload claims, save the name that is only shown."""
    params = ctx.session.client_params
    name = "".join(c for c in params.client_info.name if c.isprintable()) if params else ""
    bearer = get_access_token()
    return Guest(
        secret=bearer.token if bearer else secret,
        name=mask(name.strip()[:_NAME]) or "agent",
        line=_line(ctx),
    )


def _line(ctx: ServerRequestContext[Any]) -> str:
    """The HTTP session, where the transport has one."""
    headers = getattr(ctx.request, "headers", None)
    return str(headers.get("mcp-session-id", "")) if headers is not None else ""


def _failed(words: str) -> types.CallToolResult:
    if len(words) > _WORDS:
        words = f"{words[: _WORDS // 2]} … {words[-_WORDS // 2 :]}"
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=mask(words))], is_error=True
    )


def _unknown(name: str, offered: Mapping[str, Tool], elsewhere: Mapping[str, str]) -> str:
    if name in elsewhere:
        return f"{name} is not served here: start the server with `cockpit mcp --tier {elsewhere[name]}`."
    return f"There is no tool {name[:60]!r}. The tools are: {', '.join(offered)}."

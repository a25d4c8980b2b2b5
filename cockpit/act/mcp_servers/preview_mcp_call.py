"""The preview of a call of an MCP server's tool. See ``docs/reference/tools.md``, MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.act.mcp_servers.server_settings import McpServer
from cockpit.act.model_tools import ADDED_ACTIONS
from cockpit.act.own_tools.preview_call import describe_call, render_arguments
from cockpit.act.own_tools.tool_definition import ToolDefinition, clean_text
from cockpit.act.proposed_action import ActionPreview
from cockpit.act.sandbox.bubblewrap import Sandbox

MCP_TOOL = ADDED_ACTIONS[1]
"""The type of the action that calls a tool of an MCP server."""


def preview_mcp_call(
    definition: ToolDefinition,
    arguments: Mapping[str, Any],
    server: McpServer,
    sandbox: Sandbox,
) -> ActionPreview:
    """Return what the call will do.

    The risk follows from where the server runs, and never from what it says of its tool.
    """
    is_confined = server.is_confined and sandbox.works
    hints = ", ".join(
        f"{name}: {str(value).lower()}" for name, value in definition.annotations.items()
    )
    notes = []
    if not is_confined:
        notes.append(
            "The server is not confined: what the call does outside this project is not seen or undone here."
        )
    if hints:
        notes.append("The hints are the server's own words; the risk does not follow them.")
    return ActionPreview(
        type=MCP_TOOL,
        title=describe_call(definition.name, arguments),
        risk="medium" if is_confined else "high",
        summary=clean_text(definition.description, 300),
        fields=(
            ("tool", definition.name),
            ("MCP server", " ".join(server.command)[:200] or server.url),
            ("runs", server.describe_place(has_sandbox=sandbox.works)),
            ("approved as", definition.digest[:16]),
            ("time limit", f"{server.timeout_s:g} s"),
            *((("server's hints", hints),) if hints else ()),
        ),
        body=render_arguments(arguments),
        notes=tuple(notes),
        payload={
            "tool_id": definition.tool_id,
            "server": server.name,
            "tool": definition.function,
            "digest": definition.digest,
            "arguments": dict(arguments),
        },
    )

"""Every tool of the MCP server: the backlog's, shared with the command line, and the loop's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cockpit.backlog.tools.tool_table import WORK_TOOLS
from cockpit.backlog.tools.work_tool import Tier, WorkTool
from cockpit.core.read_record import record_schema
from cockpit.mcp.call_dispatcher import LoopTool
from cockpit.mcp.loop_tools import LOOP_TOOLS
from cockpit.mcp.skill_tools import SKILL_TOOLS

TOOLS: tuple[WorkTool | LoopTool, ...] = (*WORK_TOOLS, *LOOP_TOOLS, *SKILL_TOOLS)

TIERS: tuple[Tier, ...] = ("core", "standard", "all")
"""The sets of tools that a server can offer, each one part of the next."""


def tools_in_tier(tier: Tier) -> tuple[WorkTool | LoopTool, ...]:
    """Return the tools that a server of ``tier`` offers."""
    offered = TIERS[: TIERS.index(tier) + 1]
    return tuple(tool for tool in TOOLS if tool.tier in offered)


def tools_markdown() -> str:
    """Render every tool by tier, with its parameters, for ``docs/reference/mcp.md``."""
    return "\n".join(_tier_lines()).strip() + "\n"


def _tier_lines() -> Iterator[str]:
    for tier in TIERS:
        yield f"## Tier `{tier}`"
        yield ""
        for tool in TOOLS:
            if tool.tier == tier:
                yield from _tool_lines(tool)


def _tool_lines(tool: WorkTool | LoopTool) -> Iterator[str]:
    yield f"### `{tool.name}`"
    yield ""
    yield tool.description
    yield ""
    schema = record_schema(tool.parameters)
    if not schema["properties"]:
        yield "No parameters."
        yield ""
        return
    yield "| parameter | type | required |"
    yield "| --- | --- | --- |"
    for name, field in schema["properties"].items():
        required = "yes" if name in schema.get("required", ()) else "no"
        yield f"| `{name}` | {_type_text(field)} | {required} |"
    yield ""


def _type_text(field: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field["type"] == "array":
        return f"list of {_type_text(field['items'])}"
    return str(field["type"])

"""Every tool of the MCP server: the backlog's, shared with the command line, and the loop's."""

from __future__ import annotations

from cockpit.backlog.tools.tool_table import WORK_TOOLS
from cockpit.backlog.tools.work_tool import Tier, WorkTool
from cockpit.mcp.call_dispatcher import LoopTool
from cockpit.mcp.collection_tools import COLLECTION_TOOLS
from cockpit.mcp.loop_tools import LOOP_TOOLS
from cockpit.mcp.skill_tools import SKILL_TOOLS

TOOLS: tuple[WorkTool | LoopTool, ...] = (
    *WORK_TOOLS,
    *LOOP_TOOLS,
    *SKILL_TOOLS,
    *COLLECTION_TOOLS,
)

TIERS: tuple[Tier, ...] = ("core", "standard", "all")
"""The sets of tools that a server can offer, each one part of the next."""


def tools_in_tier(tier: Tier) -> tuple[WorkTool | LoopTool, ...]:
    """Return the tools that a server of ``tier`` offers."""
    offered = TIERS[: TIERS.index(tier) + 1]
    return tuple(tool for tool in TOOLS if tool.tier in offered)

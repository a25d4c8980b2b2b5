"""Every tool that there is: the backlog's, which the command line shares, and the loop's own."""

from __future__ import annotations

from cockpit.mcp.desk import LOOP_TOOLS, Tool

TOOLS: tuple[Tool, ...] = LOOP_TOOLS

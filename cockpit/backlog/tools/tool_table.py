"""The table of work tools, which the command line, MCP and HTTP offer for the backlog.

Names and parameters are those of ``mcp__ohno__*``, so agents and prompts written for these tools work
here. See ``docs/reference/mcp.md``.
"""

from __future__ import annotations

from cockpit.backlog.tools import memory_tools, query_tools, story_tools, task_tools
from cockpit.backlog.tools.work_tool import WorkTool
from cockpit.core.errors import NotFound

WORK_TOOLS: tuple[WorkTool, ...] = tuple(
    tool
    for module in (query_tools, task_tools, memory_tools, story_tools)
    for tool in vars(module).values()
    if isinstance(tool, WorkTool)
)
"""Every work tool, each name once."""


def find_work_tool(name: str) -> WorkTool:
    """Return the tool of that name. Raises :class:`~cockpit.core.errors.NotFound`."""
    for tool in WORK_TOOLS:
        if tool.name == name:
            return tool
    raise NotFound(
        f"There is no work tool {name}; there is {', '.join(t.name for t in WORK_TOOLS)}."
    )

"""Every tool that there is: the backlog's, which the command line shares, and the loop's own."""

from __future__ import annotations

import sqlite3
from typing import Any

from cockpit.backlog.tools.tool_table import WORK_TOOLS
from cockpit.backlog.tools.work_tool import WorkTool
from cockpit.core.clock import format_time
from cockpit.mcp.callers import Guest
from cockpit.mcp.dispatcher import LOOP_TOOLS, Desk, Tool
from cockpit.store.db.transaction import Tx


def _served(tool: WorkTool) -> Tool:
    """A work tool at the desk: who calls is looked up in the transaction that it runs in."""

    async def run(desk: Desk, guest: Guest, args: Any) -> Any:
        now = format_time(desk.store.clock.now())

        def answered(where: Tx | sqlite3.Connection, connection: sqlite3.Connection) -> Any:
            caller = guest.caller(connection, now)
            session_id = desk.session_of(caller, guest)
            return tool.run(
                where, caller, args, session_id=session_id, cap_tokens=desk.answer_tokens
            )

        if tool.writes:
            return await desk.store.write(lambda tx: answered(tx, tx.connection))
        return await desk.store.read(lambda connection: answered(connection, connection))

    return Tool(tool.name, tool.tier, tool.description, tool.parameters, run)


TOOLS: tuple[Tool, ...] = (*(_served(tool) for tool in WORK_TOOLS), *LOOP_TOOLS)

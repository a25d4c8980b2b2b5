"""Answer one call of a tool, over any transport, with a text and whether it is an error.

See ``docs/reference/mcp.md``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from cockpit.backlog.tools.work_tool import Tier
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import record_schema
from cockpit.core.secrets import mask
from cockpit.mcp.call_dispatcher import ClientConnection, Dispatcher
from cockpit.mcp.tool_registry import TOOLS, tools_in_tier

INSTRUCTIONS = (
    "cockpit keeps this project's tasks, work in progress and handoffs, and is its one gate for reading"
    " and acting: you propose, the user decides. Begin with get_session_context."
)
OWN_WAIT_S = 20
"""Seconds that a call of an approved function waits for the user."""
_MAX_NAME = 40
_MAX_ERROR = 2_000
"""Characters of an error: it may quote an argument of any length."""


class ToolServer:
    """The tools of one tier, and how a call of them is answered."""

    def __init__(self, dispatcher: Dispatcher, tier: Tier) -> None:
        self._dispatcher = dispatcher
        self._tier = tier
        self._offered = {tool.name: tool for tool in tools_in_tier(tier)}

    def list_tools(self) -> list[dict[str, Any]]:
        """Return the tools as the protocol lists them."""
        return [
            {
                "description": tool.description,
                "inputSchema": record_schema(tool.parameters),
                "name": tool.name,
            }
            for tool in self._offered.values()
        ] + self._list_own()

    def _list_own(self) -> list[dict[str, Any]]:
        return [] if self._tier == "core" else self._dispatcher.own_tools.list_tools()

    async def call(
        self, name: str, client: ClientConnection, arguments: Mapping[str, Any] | None
    ) -> tuple[str, bool]:
        """Call the tool ``name``; returns the text of the answer, and whether it is an error."""
        tool = self._offered.get(name)
        own = None
        if tool is None and self._tier != "core":
            own = self._dispatcher.own_tools.find(name)
        if tool is None and own is None:
            return _clip_error(self._explain_unknown_tool(name)), True
        try:
            if tool is not None:
                answer = await self._dispatcher.call(tool, client, arguments)
            elif own is not None:
                result = await self._dispatcher.call_own(own, client, arguments, OWN_WAIT_S)
                answer = result.body("propose_action")
        except CockpitError as error:
            await self._dispatcher.refused.add(error.code, str(error), name)
            return _clip_error(str(error)), True
        except asyncio.CancelledError:
            raise
        except Exception as error:
            print(mask("".join(traceback.format_exception(error))), file=sys.stderr)  # noqa: T201 - the log of a stdio server
            return _clip_error(
                f"{name} failed unexpectedly ({type(error).__name__}). Try it once more; if it"
                " fails again, tell the user: the server's log has the details."
            ), True
        return json.dumps(answer, ensure_ascii=False, separators=(",", ":")), False

    def _explain_unknown_tool(self, name: str) -> str:
        for tool in TOOLS:
            if tool.name == name:
                return (
                    f"{name} is not in tier {self._tier}: start the server with"
                    f" `cockpit mcp --tier {tool.tier}`."
                )
        return f"There is no tool {name[:60]!r}. The tools are: {', '.join(self._offered)}."


def identify_client(token: str, name: str, http_session: str = "") -> ClientConnection:
    """Identify who calls, by the token alone; ``name`` is the client's own and only shown."""
    printable = "".join(character for character in name if character.isprintable())
    return ClientConnection(
        token=token,
        name=mask(printable.strip()[:_MAX_NAME]) or "agent",
        http_session=http_session,
    )


def _clip_error(message: str) -> str:
    if len(message) > _MAX_ERROR:
        message = f"{message[: _MAX_ERROR // 2]} … {message[-_MAX_ERROR // 2 :]}"
    return mask(message)

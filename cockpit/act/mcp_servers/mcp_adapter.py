"""Call a tool of an MCP server, if the server still says about it what was approved.

A call whose answer does not come may have had its effect: it becomes uncertain and is never repeated. What
comes back is text for a receipt: masked, without escapes, bounded. See
``docs/reference/tools.md``, MCP servers.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.act.adapters.adapter import Found, Outcome, failed, succeeded
from cockpit.act.mcp_servers.running_servers import RunningServers
from cockpit.act.mcp_servers.server_connection import CallRefused, ServerFailed
from cockpit.act.own_tools.tool_definition import ToolDefinition, clean_text
from cockpit.act.workspace import Workspace
from cockpit.core.failure_lines import clip_middle
from cockpit.core.read_record import convert

MAX_RESULT_CHARS = 24_000
_MAX_READ = 2_000_000


def render_content(result: Mapping[str, Any], secrets: Sequence[tuple[str, str]] = ()) -> str:
    """Return the text of a result; ``secrets`` are values that never appear, each with its name.

    Pictures, sounds and links are named and not shown.
    """
    parts = [
        _render_part(part) for part in result.get("content") or () if isinstance(part, Mapping)
    ]
    structured = result.get("structuredContent")
    if structured is not None and not any(part.strip() for part in parts):
        parts.append(json.dumps(structured, ensure_ascii=False, indent=1))
    text = "\n".join(part for part in parts if part)[:_MAX_READ]
    for value, name in secrets:
        text = text.replace(value, f"[masked:{name}]")
    return clip_middle(clean_text(text, len(text) + 1), MAX_RESULT_CHARS) or "(nothing)"


def _render_part(part: Mapping[str, Any]) -> str:
    match part.get("type"):
        case "text":
            return str(part.get("text", ""))
        case "image" | "audio" as kind:
            size = len(str(part.get("data", ""))) * 3 // 4
            return f"[{kind} {part.get('mimeType', '')}, {size:,} bytes: not shown]"
        case "resource":
            resource = part.get("resource")
            inner = resource if isinstance(resource, Mapping) else {}
            text = inner.get("text")
            return (
                str(text) if text is not None else f"[resource {inner.get('uri', '')}: not shown]"
            )
        case "resource_link":
            return f"[link {part.get('uri', '')}: not followed]"
        case _:
            return ""


class _Payload(Struct, frozen=True):
    tool_id: str
    server: str
    tool: str
    digest: str
    arguments: dict[str, Any]


class McpToolAdapter:
    """Performs ``mcp_tool``.

    ``find_approved`` returns the approved tool of an id, or None; ``on_changed`` is told of a tool that its
    server describes otherwise by now, so that it is approved no more.
    """

    ends_when_cancelled = False

    def __init__(
        self,
        servers: RunningServers,
        find_approved: Callable[[str], ToolDefinition | None],
        on_changed: Callable[[str, str], Awaitable[None]],
    ) -> None:
        self._servers = servers
        self._find_approved = find_approved
        self._on_changed = on_changed

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        """Call it. An error that the tool reports is a permanent failure with its text."""
        request = convert(payload, _Payload)
        definition = self._find_approved(request.tool_id)
        if definition is None or definition.digest != request.digest:
            return failed(
                "conflict",
                f"{request.server}.{request.tool} is not approved as it was shown by now; it was not called."
                " The user approves it with `cockpit trust NAME`.",
            )
        try:
            connection, listing = await self._servers.connect(request.server)
        except ServerFailed as error:
            return failed("permanent", f"{error} The call was not made.")
        listed = next((tool for tool in listing.tools if tool.tool_id == request.tool_id), None)
        if listed is None or listed.digest != request.digest:
            change = "lists it no more" if listed is None else "describes it otherwise by now"
            reason = f"the MCP server {request.server} {change}"
            await self._on_changed(request.tool_id, reason)
            return failed(
                "conflict",
                f"{request.server}.{request.tool} was not called: {reason} than when the user approved it."
                " `cockpit tools` shows it, `cockpit trust NAME` approves it.",
            )
        try:
            result = await connection.call(request.tool, request.arguments)
        except CallRefused as error:
            return failed("permanent", str(error))
        except ServerFailed as error:
            await self._servers.drop(request.server)
            return failed("permanent", str(error), maybe=error.maybe)
        body = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        detail: dict[str, Any] = {
            "tool": request.tool_id,
            "digest": request.digest,
            "stdout": render_content(body, connection.find_secrets()),
        }
        if result.is_error:
            return failed(
                "permanent", f"{request.server}.{request.tool} reported an error.", **detail
            )
        return succeeded(f"{request.server}.{request.tool} returned.", **detail)

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        """Return unknown: no server can be asked whether it did it."""
        return "unknown"

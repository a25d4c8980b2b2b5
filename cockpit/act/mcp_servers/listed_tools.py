"""The tools that an MCP server lists, as definitions with a digest of all that it says about them.

All of it is the server's word: cleaned, bounded, shown, and never trusted to lower a risk. See
``docs/reference/tools.md``, MCP servers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.act.own_tools.tool_definition import (
    SchemaRefused,
    ToolDefinition,
    clean_schema,
    clean_text,
)
from cockpit.core.canonical_json import digest

MAX_TOOLS = 256
"""The most tools of one server."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class ToolListing(Struct, frozen=True):
    """What a server lists."""

    tools: tuple[ToolDefinition, ...]
    problems: tuple[str, ...] = ()
    """One sentence for each tool that cannot be offered."""


def read_listing(
    server: str, timeout_s: float, entries: Sequence[Mapping[str, Any]]
) -> ToolListing:
    """Return the tools of ``server``, by name; ``entries`` are as the protocol lists them."""
    tools: dict[str, ToolDefinition] = {}
    problems = []
    for entry in entries[:MAX_TOOLS]:
        name = str(entry.get("name", ""))
        if _NAME.fullmatch(name) is None:
            problems.append(f"{server}: a tool is named {clean_text(name, 80)!r}; it is left out.")
            continue
        if name in tools:
            problems.append(f"{server}.{name} is listed twice; the first one counts.")
            continue
        try:
            tools[name] = _define(server, name, timeout_s, entry)
        except SchemaRefused as error:
            problems.append(f"{server}.{name} is left out: {error}.")
    if len(entries) > MAX_TOOLS:
        problems.append(f"{server} lists {len(entries)} tools; the first {MAX_TOOLS} count.")
    return ToolListing(tuple(tools[name] for name in sorted(tools)), tuple(problems))


def _define(server: str, name: str, timeout_s: float, entry: Mapping[str, Any]) -> ToolDefinition:
    hints = entry.get("annotations")
    annotations = {
        hint: hints[hint]
        for hint in _HINTS
        if isinstance(hints, Mapping) and isinstance(hints.get(hint), bool)
    }
    described = {
        "name": name,
        "title": entry.get("title"),
        "description": entry.get("description"),
        "inputSchema": entry.get("inputSchema"),
        "annotations": hints if isinstance(hints, Mapping) else None,
    }
    return ToolDefinition(
        tool_id=f"mcp:{server}.{name}",
        name=f"{server}.{name}",
        kind="mcp",
        place=server,
        description=clean_text(str(entry.get("description") or "")),
        parameters=clean_schema(entry.get("inputSchema") or {}),
        digest=digest(described),
        timeout_s=int(timeout_s),
        function=name,
        annotations=annotations,
    )

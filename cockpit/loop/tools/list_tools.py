"""All tools that cockpit does not bring, as lists show them: approved, changed, new, or refused.

See ``docs/reference/tools.md``.
"""

from __future__ import annotations

import sqlite3
from typing import Literal

from msgspec import Struct

from cockpit.act.model_tools import TOOL_RECORDS
from cockpit.act.own_tools.check_arguments import describe_parameters
from cockpit.act.own_tools.find_tools import FoundTool, find_tools
from cockpit.act.own_tools.tool_definition import ToolDefinition
from cockpit.act.own_tools.tool_files import (
    ToolFile,
    ToolFileRefused,
    ToolFolder,
    list_tool_files,
    load_tool_file,
)
from cockpit.loop.tools.tool_catalog import ToolCatalog

ToolState = Literal["approved", "new", "changed", "gone", "refused", "off"]

STATE_TEXT = {
    "approved": "approved",
    "new": "not approved",
    "changed": "changed since it was approved",
    "gone": "approved, and its file is gone",
    "refused": "cannot be used",
    "off": "approved, and its server is off",
}
"""The states in words."""


class ToolRow(Struct, frozen=True):
    """One tool, or one file that cannot be used."""

    name: str
    kind: Literal["own", "mcp"]
    place: str
    """``project``, ``user``, ``skill:NAME``, or the MCP server."""
    state: ToolState
    file: str = ""
    note: str = ""
    """Why it cannot be used, or what it does."""
    in_source: FoundTool | None = None
    """What the source says, of a tool in Python."""
    approved: ToolDefinition | None = None
    source: ToolFile | None = None
    """The file as it is now, of a tool in Python."""

    @property
    def state_text(self) -> str:
        return STATE_TEXT[self.state]

    @property
    def signature(self) -> str:
        """The tool's parameters in one line."""
        if self.in_source is not None:
            return self.in_source.signature
        if self.approved is not None:
            return f"{self.name}({describe_parameters(self.approved.parameters)})"
        return self.name


def list_rows(connection: sqlite3.Connection | None, catalog: ToolCatalog) -> list[ToolRow]:
    """List the tools of all folders and those of MCP servers that were approved."""
    approved = () if connection is None else catalog.read_approved(connection)
    rows: list[ToolRow] = []
    for folder in catalog.list_folders():
        for name in list_tool_files(folder):
            rows += _rows_of_file(folder, name, approved)
    listed = {(row.kind, row.place, row.name) for row in rows}
    for definition in approved:
        if definition.kind == "own":
            if (definition.kind, definition.place, definition.name) not in listed:
                rows.append(_row_of_approved(definition, "gone"))
            continue
        server = catalog.servers.get(definition.place)
        is_on = server is not None and server.enabled
        rows.append(_row_of_approved(definition, "approved" if is_on else "off"))
    return rows


def _rows_of_file(
    folder: ToolFolder, name: str, approved: tuple[ToolDefinition, ...]
) -> list[ToolRow]:
    try:
        file = load_tool_file(folder, name)
        tools = find_tools(file)
    except ToolFileRefused as error:
        return [ToolRow(name, "own", folder.place, "refused", name, str(error))]
    rows = []
    for tool in tools:
        before = next(
            (
                each
                for each in approved
                if (each.kind, each.place, each.name) == ("own", folder.place, tool.name)
            ),
            None,
        )
        state: ToolState = "new"
        note = tool.summary
        if tool.name in TOOL_RECORDS:
            state, note = (
                "refused",
                f"{tool.name!r} is a tool of cockpit's own; give yours another name.",
            )
        elif before is not None:
            is_same = before.digest == file.digest and before.file == name
            state = "approved" if is_same else "changed"
        rows.append(ToolRow(tool.name, "own", folder.place, state, name, note, tool, before, file))
    return rows


def _row_of_approved(definition: ToolDefinition, state: ToolState) -> ToolRow:
    return ToolRow(
        definition.name,
        definition.kind,
        definition.place,
        state,
        definition.file,
        definition.description,
        approved=definition,
    )

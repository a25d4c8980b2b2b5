"""Approved functions in Python as tools of the MCP server, for external agents: ``own_NAME``.

A call is an action of the agent's session: it waits for the user as ``propose_action`` does. See
``docs/reference/mcp.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.tools import approved_tools

if TYPE_CHECKING:
    from cockpit.act.own_tools.tool_definition import ToolDefinition
    from cockpit.loop.tools.tool_catalog import ToolCatalog

PREFIX = "own_"
"""What the names of these tools begin with."""


class OwnTools:
    """The approved functions of one project. What reads them is loaded once there are some."""

    def __init__(self, store: Store, place: ProjectPaths, settings: RuntimeSettings) -> None:
        self._store = store
        self._place = place
        self._settings = settings
        self._catalog: ToolCatalog | None = None

    def list_tools(self) -> list[dict[str, Any]]:
        """Return them as the protocol lists tools, by name."""
        from cockpit.act.own_tools.tool_definition import describe_for_model

        return [
            {
                "description": f"{describe_for_model(each)}\nThe user decides about each call.",
                "inputSchema": dict(each.parameters),
                "name": f"{PREFIX}{each.name}",
            }
            for each in sorted(self._read(), key=lambda each: each.name)
        ]

    def find(self, name: str) -> ToolDefinition | None:
        """Return the tool that a client calls ``name``, or None."""
        if not name.startswith(PREFIX):
            return None
        bare = name.removeprefix(PREFIX)
        return next((each for each in self._read() if bare == each.name), None)

    def _read(self) -> tuple[ToolDefinition, ...]:
        if not self._store.read_now(approved_tools.has_any):
            return ()
        if self._catalog is None:
            from cockpit.loop.tools.added_tools import open_catalog

            # Where there is no sandbox, a call says so.
            self._catalog = open_catalog(self._place, self._settings, has_sandbox=True)
        usable = self._store.read_now(self._catalog.read_usable)
        return tuple(each for each in usable if each.kind == "own")

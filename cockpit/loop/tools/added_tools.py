"""What an engine has of tools that cockpit does not bring: the catalog, the running servers, the adapters.

See ``docs/reference/tools.md``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct, field

from cockpit.act.adapters import ADAPTERS, Adapter
from cockpit.act.mcp_servers.mcp_adapter import McpToolAdapter
from cockpit.act.mcp_servers.preview_mcp_call import MCP_TOOL, preview_mcp_call
from cockpit.act.mcp_servers.running_servers import RunningServers
from cockpit.act.own_tools.adopt_tool import ADOPT, AdoptAdapter
from cockpit.act.own_tools.own_tool_adapter import OwnToolAdapter
from cockpit.act.own_tools.preview_call import OWN_TOOL, preview_own_call
from cockpit.act.own_tools.tool_definition import ToolDefinition
from cockpit.act.own_tools.tool_files import ToolFolder
from cockpit.act.proposed_action import ActionPreview
from cockpit.act.text_edits import WITHHELD, ActionRefused
from cockpit.act.tool_payloads import AddedCall
from cockpit.act.workspace import Workspace
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.secrets import mask_value
from cockpit.core.skills import skill_layers
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.skills.project_skills import ProjectSkills, open_project_skills
from cockpit.loop.tools.tool_catalog import ToolCatalog
from cockpit.store.db.database import Store
from cockpit.store.tools import approved_tools


class OfferedTools(Struct, frozen=True):
    """The tools that a session has from a wave on."""

    ordinal: int = 0
    definitions: tuple[ToolDefinition, ...] = ()
    """Tools that cockpit does not bring."""
    rare: Mapping[str, str] = field(default_factory=dict)
    """Why each of cockpit's rare tools is offered, by name."""

    def find(self, name: str) -> ToolDefinition | None:
        """Return the tool of that name or alias."""
        for definition in self.definitions:
            if name == definition.name:
                return definition
        return next((each for each in self.definitions if name in each.aliases), None)


NOTHING_OFFERED = OfferedTools()


class AddedTools(Struct):
    """The tools beside cockpit's own, for all sessions of an engine."""

    store: Store
    ground: Workspace
    catalog: ToolCatalog
    servers: RunningServers
    home: Path
    """The main checkout, which has the project's tools."""
    offered: dict[str, list[OfferedTools]] = field(default_factory=dict)
    """By session: the sets of tools that it was offered, oldest first."""

    def adapters(self) -> Mapping[str, Adapter]:
        """Return the adapters of all actions."""
        return {
            **ADAPTERS,
            ADOPT: AdoptAdapter(self.store, self.home),
            OWN_TOOL: OwnToolAdapter(self.find_approved, self.catalog.list_folders),
            MCP_TOOL: McpToolAdapter(self.servers, self.find_approved, self.withdraw),
        }

    def find_approved(self, tool_id: str) -> ToolDefinition | None:
        """Return the approved tool of that id, or None."""
        return self.store.read_now(
            lambda connection: self.catalog.find_approved(connection, tool_id)
        )

    async def withdraw(self, tool_id: str, reason: str) -> None:
        """Approve a tool no more, because it is not what was approved."""
        await self.store.write(
            lambda tx: approved_tools.forget(tx, tool_id, by="engine", reason=reason)
        )

    def preview(self, call: AddedCall) -> ActionPreview:
        """Return what a call will do. Raises ``CockpitError`` with a message for the model."""
        definition = call.definition
        if definition.kind == "own":
            preview = preview_own_call(definition, call.arguments, self.ground.sandbox)
        else:
            server = self.servers.find(definition.place)
            preview = preview_mcp_call(definition, call.arguments, server, self.ground.sandbox)
        if mask_value(dict(preview.payload)) != dict(preview.payload):
            raise ActionRefused(
                f"{definition.name}: its arguments contain text that looks like a key, a token or a"
                f" password. {WITHHELD}"
            )
        return preview

    def find_allowing_rule(self, preview: ActionPreview) -> str | None:
        """Return the name of the user's rule that approves a call in advance, or None."""
        if preview.type != MCP_TOOL:
            return None
        server = self.catalog.servers.get(str(preview.payload["server"]))
        tool = str(preview.payload["tool"])
        if server is None or tool not in server.allow:
            return None
        return f"rule:mcp.{server.name} allow {tool}"


@asynccontextmanager
async def open_added_tools(
    store: Store,
    place: ProjectPaths,
    settings: RuntimeSettings,
    ground: Workspace,
) -> AsyncIterator[AddedTools]:
    """Open the added tools of a project; servers that were started meanwhile are ended afterwards.

    No server is started yet, and no file of a tool read.
    """
    variables = {**os.environ, **settings.environment}
    catalog = open_catalog(place, settings, has_sandbox=ground.sandbox.works)
    servers = RunningServers(
        settings.mcp,
        ground.sandbox,
        ground.root,
        ground.environment,
        variables,
    )
    try:
        yield AddedTools(store, ground, catalog, servers, place.home)
    finally:
        await asyncio.shield(servers.close())


def open_catalog(
    place: ProjectPaths, settings: RuntimeSettings, *, has_sandbox: bool
) -> ToolCatalog:
    """Return the catalog of a project's tools; nothing is read yet."""
    variables = {**os.environ, **settings.environment}
    project_skills = open_project_skills(place, settings.user_dir, variables)
    return ToolCatalog(
        place.home,
        settings.user_dir,
        settings.mcp,
        has_sandbox=has_sandbox,
        skill_folders=lambda: list_skill_folders(project_skills),
    )


def list_skill_folders(project_skills: ProjectSkills) -> tuple[ToolFolder, ...]:
    """Return the folders of skills that may hold tools."""
    if not skill_layers.ENABLED:
        return ()
    skills = project_skills.refresh().skills
    return tuple(
        ToolFolder(f"skill:{name}", skill.folder / inner, skill.folder)
        for name, skill in sorted(skills.items())
        for inner in ("tools", "scripts")
    )

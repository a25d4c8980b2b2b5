"""The tools that were approved and are as they were approved: what a session may be offered.

Reads the approvals when they change, and a tool's files when one of them was touched. See
``docs/reference/tools.md``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cockpit.act.mcp_servers.server_settings import McpServer
from cockpit.act.model_tools import TOOL_RECORDS
from cockpit.act.own_tools.tool_definition import ToolDefinition, read_definition
from cockpit.act.own_tools.tool_files import ToolFile, ToolFileRefused, ToolFolder, load_tool_file
from cockpit.core.canonical_json import canonical_json
from cockpit.core.project_paths import OWN_FOLDER
from cockpit.decide.provider_names import provider_name
from cockpit.store.tools import approved_tools

FOLDER = "tools"
"""The name of the folder of tools in ``.cockpit`` and in the user's configuration."""
MAX_OFFERED = 128
"""The most tools that a session is offered beside cockpit's own."""
MAX_OFFERED_CHARS = 120_000
"""The most characters of their descriptions and schemas: about a fifth of a packet's tokens."""

SkillFolders = Callable[[], Sequence[ToolFolder]]
"""Lists the folders of skills that may hold tools."""


def own_folders(home: Path, user_dir: Path) -> tuple[ToolFolder, ...]:
    """Return the folders of the user's and the project's tools; the user's win where names meet."""
    return (
        ToolFolder("user", user_dir / FOLDER, user_dir),
        ToolFolder("project", home / OWN_FOLDER / FOLDER, home),
    )


class ToolCatalog:
    """The usable tools of one project. Safe to use from the store's threads."""

    def __init__(
        self,
        home: Path,
        user_dir: Path,
        servers: Mapping[str, McpServer],
        *,
        has_sandbox: bool,
        skill_folders: SkillFolders = tuple,
    ) -> None:
        self._own = own_folders(home, user_dir)
        self.servers = servers
        self._has_sandbox = has_sandbox
        self._skill_folders = skill_folders

    def list_folders(self) -> tuple[ToolFolder, ...]:
        """Return all folders of tools, in the order in which their names win."""
        return (*self._own, *self._skill_folders())

    def read_approved(self, connection: sqlite3.Connection) -> tuple[ToolDefinition, ...]:
        """Return the approved tools, whether their files are still the same or not."""
        return tuple(
            read_definition(row.definition) for row in approved_tools.select_all(connection)
        )

    def find_approved(self, connection: sqlite3.Connection, tool_id: str) -> ToolDefinition | None:
        """Return the approved tool of that id, or None."""
        approved = self.read_approved(connection)
        return next((each for each in approved if each.tool_id == tool_id), None)

    def read_usable(self, connection: sqlite3.Connection) -> tuple[ToolDefinition, ...]:
        """Return the approved tools that are as they were approved, in a stable order."""
        approved = self.read_approved(connection)
        if not approved:
            return ()
        order = {folder.place: at for at, folder in reversed([*enumerate(self.list_folders())])}
        usable = [
            each
            for each in approved
            if (each.kind == "mcp" or each.place in order) and self._is_usable(each)
        ]
        usable.sort(key=lambda each: (each.kind == "mcp", order.get(each.place, 0), each.name))
        names, room = set(TOOL_RECORDS), MAX_OFFERED_CHARS
        chosen = []
        for each in usable[:MAX_OFFERED]:
            # A name that is taken is the first one's: a project's tool never stands for the user's. Names
            # that a provider cannot tell apart would end every call of the model.
            taken = provider_name(each.name)
            room -= len(each.description) + len(canonical_json(dict(each.parameters)))
            if taken in names or room < 0:
                continue
            names |= {taken, *each.aliases}
            chosen.append(each)
        return tuple(chosen)

    def load_file(self, place: str, name: str) -> ToolFile:
        """Read a tool's file as it is now. Raises :class:`ToolFileRefused`."""
        folders = [folder for folder in self.list_folders() if folder.place == place]
        for folder in folders:
            if os.path.lexists(folder.path / name):
                return load_tool_file(folder, name)
        raise ToolFileRefused(f"{place}:{name} is gone.")

    def _is_usable(self, definition: ToolDefinition) -> bool:
        if definition.kind == "mcp":
            server = self.servers.get(definition.place)
            if server is None or not server.enabled:
                return False
            return server.tools is None or definition.function in server.tools
        if not self._has_sandbox:
            return False
        try:
            file = self.load_file(definition.place, definition.file)
        except ToolFileRefused:
            return False
        return file.digest == definition.digest

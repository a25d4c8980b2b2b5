"""Whether the MCP servers of the settings start and list their tools. See ``docs/reference/tools.md``."""

from __future__ import annotations

import os

from msgspec.structs import replace

from cockpit.act.mcp_servers.running_servers import RunningServers
from cockpit.act.mcp_servers.server_connection import ServerFailed
from cockpit.act.workspace import open_workspace
from cockpit.commands.setup.doctor_check import Check
from cockpit.config.load_settings import Settings
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.text import pluralize

_START_S = 15.0


async def server_checks(place: ProjectPaths, settings: Settings | None) -> list[Check]:
    """Start each MCP server, list its tools and end it."""
    servers = dict(settings.runtime.mcp) if settings is not None else {}
    if settings is None or not servers:
        return []
    ground = await open_workspace(place.root, choices=settings.runtime.sandbox)
    quick = {
        name: replace(server, start_timeout_s=min(server.start_timeout_s, _START_S))
        for name, server in servers.items()
    }
    running = RunningServers(quick, ground.sandbox, ground.root, ground.environment, os.environ)
    checks = []
    try:
        for name, server in quick.items():
            label = f"mcp {name}"
            if not server.enabled:
                checks.append(Check(label, "ok", "switched off"))
                continue
            wanted = (*server.env, *server.headers.values())
            if lacking := [each for each in wanted if not os.environ.get(each)]:
                fix = f"set it, or remove it from [mcp.{name}]"
                checks.append(Check(label, "missing", f"{', '.join(lacking)} is not set", fix))
                continue
            try:
                listing = await running.list_tools(name)
            except ServerFailed as error:
                fix = f"correct [mcp.{name}], or set enabled = false there"
                checks.append(Check(label, "broken", str(error), fix))
                continue
            where = server.describe_place(has_sandbox=ground.sandbox.works)
            checks.append(Check(label, "ok", f"{pluralize(len(listing.tools), 'tool')}; {where}"))
    finally:
        await running.close()
    return checks

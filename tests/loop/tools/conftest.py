"""MCP servers of tests, as the user's settings name them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sandbox_here import CONFINES

from cockpit.act.mcp_servers.server_settings import McpServer

# Without a sandbox no tool runs, which tests/act/own_tools does not need.
collect_ignore = (
    []
    if CONFINES
    else [
        *("test_serve_own_tools.py", "test_hostile_tools.py", "test_mcp_servers.py"),
        *("test_tool_crashes.py", "test_mcp_over_http.py", "test_own_guards.py"),
    ]
)


@pytest.fixture
def stand_in(project: Path) -> Callable[..., dict[str, McpServer]]:
    """Name a server that behaves as its mode says, which may write in the project to count calls."""
    shutil.copy(Path(__file__).with_name("mcp_stand_in.py"), project / "server.py")

    def name(mode: str = "honest", **fields: object) -> dict[str, McpServer]:
        command = ("python3", str(project / "server.py"), mode, str(project / "calls.txt"))
        server = McpServer("archive", command, write=True, **fields)  # type: ignore[arg-type]
        return {"archive": server}

    return name

"""An MCP server as the user's settings name it. See ``docs/reference/tools.md``, MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field


class McpServer(Struct, frozen=True):
    """A table ``[mcp.NAME]``: a program (``command``) or an address (``url``)."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: tuple[str, ...] = ()
    """Names of variables that the program gets beside the harmless ones."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By header of requests to ``url``: the variable with its value."""
    allow: tuple[str, ...] = ()
    """Tools whose calls the user approves in advance."""
    reads: tuple[str, ...] = ()
    """Tools that only read, by the user's word: sessions that only read have them."""
    tools: tuple[str, ...] | None = None
    """The tools that are offered; None for all that were approved."""
    sandbox: bool = True
    network: bool = False
    write: bool = False
    """Whether the program may write in the project."""
    read_places: tuple[Path, ...] = ()
    write_places: tuple[Path, ...] = ()
    timeout_s: float = 60.0
    start_timeout_s: float = 30.0
    enabled: bool = True

    @property
    def is_confined(self) -> bool:
        """Whether it runs in the sandbox and without the network."""
        return bool(self.command) and self.sandbox and not self.network

    def describe_place(self, *, has_sandbox: bool) -> str:
        """Return where it runs and what it can reach, in words."""
        if self.url:
            return f"outside this machine's sandbox, at {self.url}"
        if not self.sandbox or not has_sandbox:
            why = "" if not self.sandbox else ": there is none on this machine"
            return f"outside the sandbox{why}, with your rights, files and network"
        project = "project writable, .git read-only" if self.write else "project read-only"
        network = "on" if self.network else "off"
        return f"bubblewrap: {project}, home hidden, network {network}"

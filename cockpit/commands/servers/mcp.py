"""``cockpit mcp``: serve the backlog, its memory and the loop to external agents."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, cast

import click

from cockpit.cli_options import examples
from cockpit.commands.open_project import (
    WrongUse,
    ensure_root_token,
    find_project,
    load_project_settings,
)
from cockpit.commands.terminal import is_terminal, say

if TYPE_CHECKING:
    from cockpit.backlog.tools.work_tool import Tier

_HOST, _PORT = "127.0.0.1", 8765


@click.command(
    short_help="Serve external agents over MCP.",
    epilog=examples(
        "cockpit mcp", "cockpit mcp --tier standard", "cockpit mcp --http 127.0.0.1:8765"
    ),
)
@click.option(
    "--tier",
    type=click.Choice(["core", "standard", "all"]),
    default="core",
    help="Offer these tools. Default: core, the dozen that an agent needs while it works.",
)
@click.option(
    "--http",
    "address",
    is_flag=False,
    flag_value=f"{_HOST}:{_PORT}",
    metavar="[HOST:PORT]",
    help="Serve streamable HTTP instead of standard input and output; port 0 picks a free one."
    f" Default: {_HOST}:{_PORT}.",
)
def mcp(tier: str, address: str | None) -> None:
    """Serve external agents over the Model Context Protocol: Claude Code, Codex, or any other client.

    A client starts this command and talks to it on standard input and output. Proposals of agents wait in
    the one queue of this project. It acts as the holder of $COCKPIT_TOKEN, else as an agent; over HTTP every
    client sends a token of its own, made with `cockpit tokens issue`. docs/reference/mcp.md lists the tools,
    docs/how-to the setup of each client.
    """
    host, _, port = (address or "").rpartition(":")
    if address is not None and not (host and port.isdecimal() and int(port) < 65_536):
        raise WrongUse(f"--http {address!r} is not HOST:PORT, such as {_HOST}:{_PORT}.")
    from cockpit.access.capability_tokens import TOKEN_VARIABLE
    from cockpit.access.listen_address import listening

    place = find_project()
    settings = load_project_settings(place).runtime
    # Before what speaks the protocol is loaded: an address that is none is told at once.
    door = listening(host.strip("[]"), int(port)) if address is not None else None
    ensure_root_token(place, quiet=address is None)
    from cockpit.mcp.run_server import serve_http, serve_stdio

    if door is not None:
        asyncio.run(serve_http(place, settings, cast("Tier", tier), door, _tell))
        # Only an interrupt ends a server. It may arrive too late in the server's own end to be raised there.
        raise KeyboardInterrupt
    if sys.stdin is None:
        raise WrongUse(
            "Standard input is closed. An MCP client starts this command and talks to it there."
        )
    if is_terminal(sys.stdin):
        say(
            "An MCP client starts this command and talks to it on standard input. docs/reference/mcp.md"
            " says how."
        )
    secret = os.environ.get(TOKEN_VARIABLE, "")
    asyncio.run(serve_stdio(place, settings, cast("Tier", tier), secret.strip()))


def _tell(address: str) -> None:
    say(f"Listening on {address}. Press Ctrl+C to end it.")

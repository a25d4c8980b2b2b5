"""``cockpit mcp``: serve tasks, memory and the loop to agents that cockpit does not drive."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, cast

import click

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


@click.command(short_help="Serve agents from outside over the Model Context Protocol.")
@click.option(
    "--tier",
    type=click.Choice(["core", "standard", "all"]),
    default="core",
    help="How many tools are offered. Default: core, the dozen that are needed while working.",
)
@click.option("--http", is_flag=True, help="Over streamable HTTP, not standard input and output.")
@click.option("--host", default=_HOST, metavar="ADDRESS", help=f"With --http. Default: {_HOST}.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=_PORT,
    help=f"With --http; 0 takes a free one. Default: {_PORT}.",
)
@click.option(
    "--token",
    default="",
    metavar="SECRET",
    help="Act as the holder of this token (COCKPIT_TOKEN). Default: an agent.",
)
def mcp(tier: str, http: bool, host: str, port: int, token: str) -> None:
    """Serve agents from outside: Claude Code, Codex, any client of the Model Context Protocol.

    Their proposals wait in the one queue of this project. Over HTTP every client sends a token of its
    own, made with `cockpit tokens issue`. docs/reference/agents.md has the configuration of each.
    """
    if http and token:
        raise WrongUse("Over HTTP each client sends its own token; --token is for standard input.")
    if not http and (host, port) != (_HOST, _PORT):
        raise WrongUse("--host and --port belong to --http.")
    from cockpit.access.listen_address import listening
    from cockpit.loop.decisions.decide_proposal import TOKEN

    place = find_project()
    settings = load_project_settings(place).runtime
    # Before what speaks the protocol is loaded: an address that is none is told at once.
    door = listening(host, port) if http else None
    ensure_root_token(place, quiet=not http)
    from cockpit.mcp.run_server import serve_http, serve_stdio

    if door is not None:
        asyncio.run(serve_http(place, settings, cast("Tier", tier), door, _tell))
    else:
        if sys.stdin is None:
            raise WrongUse("Standard input is closed; a client starts this and speaks to it there.")
        if is_terminal(sys.stdin):
            say(
                "A client starts this and speaks to it on standard input; docs/reference/agents.md tells how."
            )
        secret = token or os.environ.get(TOKEN, "")
        asyncio.run(serve_stdio(place, settings, cast("Tier", tier), secret.strip()))


def _tell(address: str) -> None:
    say(f"Listening on {address}; end with Ctrl+C.")

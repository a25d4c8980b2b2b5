"""``cockpit serve``: serve profiles, packets and feedback over HTTP to programs with a token."""

from __future__ import annotations

import asyncio

import click

from cockpit.cli_options import examples
from cockpit.commands.open_project import (
    ensure_root_token,
    find_project,
    load_project_settings,
    open_store,
)
from cockpit.commands.terminal import say

_HOST, _PORT = "127.0.0.1", 8787


@click.command(
    short_help="Serve programs over HTTP.",
    epilog=examples("cockpit serve", "cockpit serve --port 0"),
)
@click.option(
    "--host", default=_HOST, metavar="ADDRESS", help=f"Listen on this address. Default: {_HOST}."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=_PORT,
    help=f"Listen on this port; 0 picks a free one. Default: {_PORT}.",
)
def serve(host: str, port: int) -> None:
    """Serve profiles, packets and feedback to programs over HTTP.

    Each program sends a token of its own, made with `cockpit tokens issue`. docs/reference/http.md lists
    the routes, their scopes and their errors. Ctrl+C ends it.
    """
    from cockpit.api import server

    place = find_project()
    settings = load_project_settings(place).runtime
    ensure_root_token(place)
    with open_store(place) as store:
        asyncio.run(server.serve(store, settings, host, port, _tell))
    # Only an interrupt ends a server. It may arrive too late in the server's own end to be raised there.
    raise KeyboardInterrupt


def _tell(address: str) -> None:
    say(f"Listening on {address}. Press Ctrl+C to end it.")

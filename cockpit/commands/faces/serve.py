"""``cockpit serve``: RFC-003 §12.1's routes over HTTP, for programs that hold a token."""

from __future__ import annotations

import asyncio

import click

from cockpit.commands.open_project import (
    ensure_root_token,
    find_project,
    load_project_settings,
    open_store,
)
from cockpit.commands.terminal import say

_HOST, _PORT = "127.0.0.1", 8787


@click.command(short_help="Serve profiles, packets and feedback over HTTP.")
@click.option("--host", default=_HOST, metavar="ADDRESS", help=f"Default: {_HOST}.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=_PORT,
    help=f"0 takes a free one. Default: {_PORT}.",
)
def serve(host: str, port: int) -> None:
    """Serve programs over HTTP: each sends a token of its own, made with `cockpit tokens issue`.

    docs/reference/http.md has the routes, their scopes and their errors.
    """
    from cockpit.api import server

    place = find_project()
    settings = load_project_settings(place).runtime
    ensure_root_token(place)
    with open_store(place) as store:
        asyncio.run(server.serve(store, settings, host, port, _tell))


def _tell(address: str) -> None:
    say(f"Listening on {address}; end with Ctrl+C.")

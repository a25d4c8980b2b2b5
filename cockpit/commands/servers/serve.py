"""``cockpit serve``: serve a project over HTTP to programs with a token."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cockpit.cli_options import examples
from cockpit.commands.open_project import (
    WrongUse,
    ensure_root_token,
    find_project,
    load_project_settings,
    open_store,
)
from cockpit.commands.servers.listen_options import check_listening, listen_options
from cockpit.commands.terminal import say

if TYPE_CHECKING:
    from cockpit.access.listen_address import Address

_PORT = 8787


@click.command(
    short_help="Serve programs over HTTP.",
    epilog=examples(
        "cockpit serve",
        "cockpit serve --socket ~/cockpit.sock",
        "cockpit serve --host 192.0.2.7 --tls-cert cert.pem --tls-key key.pem",
    ),
)
@listen_options(port=_PORT)
@click.option(
    "--socket",
    "path",
    type=click.Path(path_type=Path),
    help="Listen on this Unix socket instead, which only you may use.",
)
def serve(
    host: str,
    port: int,
    path: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Serve proposals, sessions, tasks, events and the journal to programs over HTTP.

    Each program sends a token of its own, made with `cockpit tokens issue`. docs/reference/http.md lists
    the routes, their scopes and their errors. Ctrl+C ends it.
    """
    check_listening(tls_cert, tls_key)
    if path is not None and tls_cert is not None:
        raise WrongUse("A Unix socket is not encrypted. Leave out --tls-cert, or --socket.")
    from cockpit.access.http.guarded_server import Listening
    from cockpit.api import server

    place = find_project()
    settings = load_project_settings(place).runtime
    ensure_root_token(place)
    where = Listening(
        host,
        port,
        None if path is None else path.expanduser().absolute(),
        tls_cert,
        tls_key,
    )
    with open_store(place) as store:
        asyncio.run(server.serve(store, settings, where, _tell, place))
    # Only an interrupt ends a server. It may arrive too late in the server's own end to be raised there.
    raise KeyboardInterrupt


def _tell(address: Address) -> None:
    say(f"Listening on {address.url}. Press Ctrl+C to end it.")
    if not address.is_local and address.scheme == "http":
        say("Warning: other machines reach it, and nothing is encrypted. Pass --tls-cert.")

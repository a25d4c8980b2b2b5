"""``cockpit serve``: serve a project over HTTP to programs with a token."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cockpit.cli_options import examples
from cockpit.commands.open_project import (
    ensure_root_token,
    find_project,
    load_project_settings,
    open_store,
)
from cockpit.commands.servers.listen_options import HOST, check_listening, listen_options
from cockpit.commands.terminal import say, show

if TYPE_CHECKING:
    from cockpit.access.listen_address import Address

_PORT = 8787


@click.command(
    short_help="Serve programs over HTTP.",
    epilog=examples(
        "cockpit serve",
        "cockpit serve --socket ~/cockpit.sock",
        "cockpit serve --host 192.0.2.7 --tls-cert cert.pem --tls-key key.pem",
        "cockpit serve --systemd > ~/.config/systemd/user/cockpit.service",
    ),
)
@listen_options(port=_PORT, socket_use="which only you may use")
@click.option(
    "--systemd", is_flag=True, help="Print a systemd unit that serves this project, and end."
)
def serve(
    host: str,
    port: int,
    path: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    systemd: bool,
) -> None:
    """Serve proposals, sessions, tasks, events and the journal to programs over HTTP.

    Each program sends a token of its own, made with `cockpit tokens issue`. docs/reference/http.md lists
    the routes, their scopes and their errors. Ctrl+C ends it.
    """
    check_listening(path, tls_cert, tls_key)
    if systemd:
        _print_unit(host, port, path, tls_cert, tls_key)
        return
    from cockpit.api import server
    from cockpit.api.guarded_server import Listening

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


def _print_unit(
    host: str, port: int, path: Path | None, tls_cert: Path | None, tls_key: Path | None
) -> None:
    from cockpit.commands.servers.systemd_unit import systemd_unit

    options = [] if host == HOST else ["--host", host]
    options += [] if port == _PORT else ["--port", str(port)]
    for name, file in (("--socket", path), ("--tls-cert", tls_cert), ("--tls-key", tls_key)):
        if file is not None:
            options += [name, str(file.expanduser().absolute())]
    show(systemd_unit(find_project().home, options, os.environ).rstrip("\n"))

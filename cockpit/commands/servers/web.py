"""``cockpit web``: show the screen in a browser, also on a phone."""

from __future__ import annotations

import asyncio
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cockpit.access import user_presence
from cockpit.access.token_scopes import NotAllowed
from cockpit.cli_options import examples
from cockpit.commands.open_project import (
    ensure_root_token,
    find_project,
    open_store,
)
from cockpit.commands.servers.listen_options import check_listening, listen_options
from cockpit.commands.terminal import say
from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.access.listen_address import Address
    from cockpit.core.project_paths import ProjectPaths

_PORT = 8788


@click.command(
    short_help="Show the screen in a browser.",
    epilog=examples(
        "cockpit web",
        "cockpit web --all --port 9000",
        "cockpit web --host 192.0.2.7 --tls-cert cert.pem --tls-key key.pem",
    ),
)
@click.option(
    "--all", "every", is_flag=True, help="Show all projects, and what waits in each of them."
)
@listen_options(port=_PORT, socket_use="for `cockpit --connect` alone")
def web(
    every: bool,
    host: str,
    port: int,
    path: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Show this project's screen in a browser of yours, with the same keys, also on a phone.

    It prints a link that works once; after each use it prints the next. Anyone who opens one decides as you.
    Each tab is a screen of its own, and closing it ends that screen. docs/reference/web.md has the limits.
    `cockpit --connect` shows it in a terminal of another machine, for a token with the scope screen.open.
    Ctrl+C ends it.
    """
    check_listening(path, tls_cert, tls_key)
    if absence := user_presence.explain_absence():
        raise NotAllowed(
            f"Nothing was served: who opens a link decides as you do, and {absence}. Start it in a"
            " terminal of your own."
        )
    from cockpit.api.guarded_server import Listening
    from cockpit.api.web.web_server import serve_screens

    place = find_project() if not every else _find_project_here()
    folder = Path.cwd() if every or place is None else place.home
    command = [sys.executable, "-P", "-m", "cockpit", *(["--all"] if every else [])]
    socket = None if path is None else path.expanduser().absolute()
    where = Listening(host, port, socket, tls_cert, tls_key)
    if place is not None:
        ensure_root_token(place)
    with nullcontext() if place is None else open_store(place) as store:
        asyncio.run(serve_screens(command, folder, where, _tell, store))
    # Only an interrupt ends a server. It may arrive too late in the server's own end to be raised there.
    raise KeyboardInterrupt


def _find_project_here() -> ProjectPaths | None:
    """Return the project of this folder; None outside of projects."""
    try:
        return find_project()
    except CockpitError:
        return None


def _tell(address: Address, link: str) -> None:
    if address.scheme == "unix":
        say(f"Listening on {address.url} for `cockpit --connect`. Press Ctrl+C to end the screens.")
        return
    say(f"Open {link} in a browser. It works once. Press Ctrl+C to end the screens.")

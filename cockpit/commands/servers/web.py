"""``cockpit web``: show the screen in a browser, also on a phone."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from cockpit.access import user_presence
from cockpit.access.token_scopes import NotAllowed
from cockpit.cli_options import examples
from cockpit.commands.open_project import find_project
from cockpit.commands.servers.listen_options import check_listening, listen_options
from cockpit.commands.terminal import say

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
@listen_options(port=_PORT)
def web(
    every: bool,
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Show this project's screen in a browser of yours, with the same keys, also on a phone.

    It prints a link that works once; after each use it prints the next. Anyone who opens one decides as you.
    Each tab is a screen of its own, and closing it ends that screen. docs/reference/web.md has the limits.
    Ctrl+C ends it. For a terminal of another machine use ssh -t: docs/how-to/another-machine.md.
    """
    check_listening(tls_cert, tls_key)
    if absence := user_presence.explain_absence():
        raise NotAllowed(
            f"Nothing was served: who opens a link decides as you do, and {absence}. Start it in a"
            " terminal of your own."
        )
    from cockpit.access.http.guarded_server import Listening
    from cockpit.api.web.web_server import serve_screens

    folder = Path.cwd() if every else find_project().home
    command = [sys.executable, "-P", "-m", "cockpit", *(["--all"] if every else [])]
    where = Listening(host, port, None, tls_cert, tls_key)
    asyncio.run(serve_screens(command, folder, where, _tell))
    # Only an interrupt ends a server. It may arrive too late in the server's own end to be raised there.
    raise KeyboardInterrupt


def _tell(link: str) -> None:
    say(f"Open {link} in a browser. It works once. Press Ctrl+C to end the screens.")

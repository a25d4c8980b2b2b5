"""The server of ``cockpit web``, from its start to its end. See ``docs/reference/web.md``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cockpit.access.http.guarded_server import (
    GuardedServer,
    Listening,
    guarded_config,
    load_certificate,
    open_listener,
)
from cockpit.access.listen_address import CannotListen
from cockpit.access.user_presence import shield_process
from cockpit.api.middleware import Gate
from cockpit.api.web.screen_terminal import ScreenTerminal
from cockpit.api.web.screens import LARGEST_MESSAGE, Screens, Size
from cockpit.api.web.web_application import BrowserLogins, web_application
from cockpit.core.terminal.far_terminal import VARIABLE

_OTHER_TERMINALS = (
    *("TMUX", "TMUX_PANE", "STY", "WINDOW", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "LC_TERMINAL"),
    *("KITTY_WINDOW_ID", "WEZTERM_PANE", "WT_SESSION", "VTE_VERSION", "ITERM_SESSION_ID"),
    *("COLUMNS", "LINES", "NO_COLOR", "COLORTERM", "COLORFGBG"),
)
"""What describes the terminal that the server was started in."""


async def serve_screens(
    command: Sequence[str], folder: Path, where: Listening, tell: Callable[[str], None]
) -> None:
    """Serve ``command`` in ``folder`` to browsers until interrupted. Raises ``CannotListen``.

    ``tell`` is called with each link that works: the first, and the next one whenever one was used.
    """
    shield_process()
    context = load_certificate(where)
    logins = BrowserLogins()

    def open_terminal(size: Size) -> ScreenTerminal:
        return ScreenTerminal(command, folder, screen_environment(os.environ), size)

    screens = Screens(open_terminal)
    with open_listener(where, tls=context is not None) as (listener, address):
        if not address.is_local and context is None:
            raise CannotListen(
                f"Other machines reach {where.host}, and nothing would be encrypted. Pass --tls-cert, or"
                " listen on 127.0.0.1 and forward the port with ssh."
            )

        def tell_link() -> None:
            tell(f"{address.url}/open/{logins.link}")

        app = web_application(screens, logins, tell_link, secure=context is not None)
        gate = Gate(app, address, sockets=True)
        config = guarded_config(gate, log_level="error", largest_message=LARGEST_MESSAGE)
        tell_link()
        server = GuardedServer(config, context, before_end=screens.close)
        await server.serve(sockets=[listener])


def screen_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for the page's terminal, from that of the server."""
    kept = {name: value for name, value in environment.items() if name not in _OTHER_TERMINALS}
    return {**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor", VARIABLE: "1"}

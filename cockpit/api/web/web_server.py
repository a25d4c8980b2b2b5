"""The server of ``cockpit web``, from its start to its end. See ``docs/reference/web.md``."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import uvicorn

from cockpit.access.http.guarded_protocol import IDLE_S, LARGEST_HEAD, GuardedProtocol
from cockpit.access.listen_address import Address, CannotListen, listening
from cockpit.access.user_presence import shield_process
from cockpit.api.middleware import Gate
from cockpit.api.server import GuardedServer, Listening, load_certificate
from cockpit.api.web.browser_logins import BrowserLogins
from cockpit.api.web.screen_terminal import ScreenTerminal
from cockpit.api.web.web_application import LARGEST_MESSAGE, Screens, web_application

_LEAVE_S = 2
_PING_S = 20.0
"""Seconds between two questions whether a tab is there, and for its answer."""
_OTHER_TERMINALS = (
    *("TMUX", "TMUX_PANE", "STY", "WINDOW", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "LC_TERMINAL"),
    *("KITTY_WINDOW_ID", "WEZTERM_PANE", "WT_SESSION", "VTE_VERSION", "ITERM_SESSION_ID"),
    *("COLUMNS", "LINES"),
)
"""What describes the terminal that the server was started in."""


async def serve_screens(
    command: Sequence[str],
    folder: Path,
    where: Listening,
    tell: Callable[[Address, str], None],
) -> None:
    """Serve ``command`` in ``folder`` to browsers until interrupted. Raises ``CannotListen``.

    ``tell`` is called with each link that works: the first, and the next one whenever one was used.
    """
    shield_process()
    context = load_certificate(where)
    listener, address = listening(where.host, where.port, tls=context is not None)
    if not address.is_local and context is None:
        listener.close()
        raise CannotListen(
            f"Other machines reach {where.host}, and nothing would be encrypted. Pass --tls-cert, or listen"
            " on 127.0.0.1 and forward the port with ssh."
        )
    logins = BrowserLogins()
    environment = screen_environment(os.environ)
    screens = Screens(logins, lambda size: ScreenTerminal(command, folder, environment, size))

    def tell_link() -> None:
        tell(address, f"{address.url}/open/{logins.link}")

    app = web_application(screens, tell_link, secure=context is not None)
    config = uvicorn.Config(
        Gate(app, address, sockets=True),
        http=GuardedProtocol,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        timeout_keep_alive=IDLE_S,
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=_LEAVE_S,
        server_header=False,
        proxy_headers=False,
        ws="websockets-sansio",
        ws_max_size=LARGEST_MESSAGE,
        ws_ping_interval=_PING_S,
        ws_ping_timeout=_PING_S,
        ws_per_message_deflate=False,
        lifespan="off",
    )
    with listener:
        tell_link()
        await _WebServer(config, context, screens).serve(sockets=[listener])


class _WebServer(GuardedServer):
    """The guarded server, whose screens end before it."""

    def __init__(self, config: uvicorn.Config, context: object, screens: Screens) -> None:
        super().__init__(config, context)  # type: ignore[arg-type]
        self._screens = screens

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the screens, then the server."""
        await self._screens.close()
        await super().shutdown(sockets)


def screen_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for a terminal in a browser, from that of the server."""
    kept = {name: value for name, value in environment.items() if name not in _OTHER_TERMINALS}
    return {**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor"}

"""The server of ``cockpit web``, from its start to its end. See ``docs/reference/web.md``."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import uvicorn

from cockpit.access.listen_address import Address, CannotListen
from cockpit.access.user_presence import shield_process
from cockpit.api.guarded_server import (
    GuardedServer,
    Listening,
    guarded_config,
    load_certificate,
    open_listener,
)
from cockpit.api.middleware import Gate
from cockpit.api.web.browser_logins import BrowserLogins
from cockpit.api.web.running_screens import Screens
from cockpit.api.web.screen_messages import CONNECT, LARGEST_MESSAGE, Hello
from cockpit.api.web.screen_terminal import ScreenTerminal
from cockpit.api.web.terminal_callers import TerminalCallers
from cockpit.api.web.web_application import web_application
from cockpit.core.terminal.far_terminal import VARIABLE
from cockpit.store.db.database import Store
from cockpit.store.journal.refused_requests import RefusedRequests

_OTHER_TERMINALS = (
    *("TMUX", "TMUX_PANE", "STY", "WINDOW", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "LC_TERMINAL"),
    *("KITTY_WINDOW_ID", "WEZTERM_PANE", "WT_SESSION", "VTE_VERSION", "ITERM_SESSION_ID"),
    *("COLUMNS", "LINES", "NO_COLOR", "COLORTERM", "COLORFGBG"),
)
"""What describes the terminal that the server was started in."""
_TERMINFO = ("/usr/share/terminfo", "/lib/terminfo", "/etc/terminfo")


async def serve_screens(
    command: Sequence[str],
    folder: Path,
    where: Listening,
    tell: Callable[[Address, str], None],
    store: Store | None = None,
) -> None:
    """Serve ``command`` in ``folder`` to browsers and terminals until interrupted. Raises ``CannotListen``.

    ``tell`` is called with each link that works: the first, and the next one whenever one was used. ``store``
    has the tokens that open a screen on a terminal; without one, none does.
    """
    shield_process()
    context = load_certificate(where)
    logins = BrowserLogins()

    def open_terminal(hello: Hello) -> ScreenTerminal:
        words = [*command, *(["--theme", hello.theme] if hello.theme else [])]
        return ScreenTerminal(words, folder, screen_environment(os.environ, hello), hello.size)

    screens = Screens(open_terminal)
    async with AsyncExitStack() as stack:
        listener, address = stack.enter_context(open_listener(where, tls=context is not None))
        if not address.is_local and context is None:
            raise CannotListen(
                f"Other machines reach {where.host}, and nothing would be encrypted. Pass --tls-cert, or"
                " listen on 127.0.0.1 and forward the port with ssh."
            )
        refused = None
        if store is not None:
            refused = RefusedRequests(store, "web")
            await stack.enter_async_context(refused.flushing())

        def tell_link() -> None:
            tell(address, f"{address.url}/open/{logins.link}")

        app = web_application(
            screens,
            logins,
            TerminalCallers(store, refused),
            tell_link,
            secure=context is not None,
        )
        gate = Gate(app, address, sockets=True, program_path=CONNECT)
        config = guarded_config(gate, log_level="error", largest_message=LARGEST_MESSAGE)
        tell_link()
        await _WebServer(config, context, screens).serve(sockets=[listener])


class _WebServer(GuardedServer):
    """The guarded server, whose screens end before it."""

    def __init__(
        self, config: uvicorn.Config, context: ssl.SSLContext | None, screens: Screens
    ) -> None:
        super().__init__(config, context)
        self._screens = screens

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the screens, then the server."""
        await self._screens.close()
        await super().shutdown(sockets)


def screen_environment(environment: Mapping[str, str], hello: Hello) -> dict[str, str]:
    """Return an environment for a terminal elsewhere, from that of the server."""
    kept = {name: value for name, value in environment.items() if name not in _OTHER_TERMINALS}
    variables = {"COLORTERM": hello.colorterm, "TERM_PROGRAM": hello.program}
    variables["NO_COLOR"] = "1" if hello.no_color else ""
    kept |= {name: value for name, value in variables.items() if value}
    return {**kept, "TERM": _choose_term(hello), VARIABLE: "1"}


def _choose_term(hello: Hello) -> str:
    """Return a terminal's TERM where programs of this machine know it, else one that is like it."""
    term = hello.term
    if term and any(Path(root, term[0], term).is_file() for root in _TERMINFO):
        return term
    has_colors = hello.colorterm or "color" in term or "kitty" in term or "direct" in term
    return "xterm-256color" if has_colors else "xterm"

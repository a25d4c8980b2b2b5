"""``cockpit --connect``: show the screen of another machine in this terminal.

Specified in ``docs/reference/connect.md``.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from cockpit.commands.open_project import WrongUse
from cockpit.commands.sessions.screen import require_terminal

_THEME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", re.ASCII)


def open_remote_screen(
    server: str, token_file: str | None, ca_file: str | None, theme: str, *, allows_plain: bool
) -> int:
    """Show the screen of ``cockpit web`` at ``server``; return the exit code.

    Raises ``NotAllowed`` below an agent, and ``CockpitError`` where the server, its certificate or the token
    cannot be used.
    """
    from cockpit.access.user_presence import require_no_agent, shield_process

    require_no_agent("the screen of another machine")
    require_terminal()
    if theme and not _THEME.fullmatch(theme):
        raise WrongUse(f"{theme!r} is not the name of a theme.")
    from cockpit.api.remote_screen.remote_screen import show_remote_screen
    from cockpit.api.remote_screen.server_address import load_trust, read_address, read_token

    shield_process()
    address = read_address(server, allows_plain=allows_plain)
    trust = load_trust(address, None if ca_file is None else Path(ca_file).expanduser())
    token = read_token(None if token_file is None else Path(token_file).expanduser(), os.environ)
    return asyncio.run(show_remote_screen(address, token, trust, theme))

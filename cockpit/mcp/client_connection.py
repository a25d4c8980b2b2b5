"""One client's connection to the MCP server, and the caller it acts as.

A caller over MCP is the principal of a token or, without a token, an agent. It is never the user. See
``docs/reference/mcp.md``.
"""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from cockpit.access.capability_tokens import holder
from cockpit.access.principals import AGENT, Caller
from cockpit.access.token_scopes import AGENT_SCOPES

LOCAL_AGENT = Caller(f"{AGENT}mcp", AGENT_SCOPES)
"""The caller of a client on this machine that has no token."""


class ClientConnection(Struct, frozen=True):
    """One client of the server."""

    token: str = ""
    """The client's token, or empty."""
    name: str = "agent"
    """The name that the client gives itself; shown, never trusted."""
    http_session: str = ""
    """The HTTP session's id, which tells two clients of the same name apart; empty over stdio."""

    def authenticate(self, connection: sqlite3.Connection, now: str) -> Caller:
        """Return the caller at the time ``now``.

        Call it in the transaction that acts for the caller. Raises ``TokenRefused``.
        """
        return holder(connection, self.token, now) if self.token else LOCAL_AGENT

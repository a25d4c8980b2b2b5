"""Who calls over MCP: the holder of a token, or without one an agent with an agent's scopes.

Never the person: a program speaks here. Source: RFC-003 §11.2.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from cockpit.access.capability_tokens import holder
from cockpit.access.principals import AGENT, Caller
from cockpit.access.token_scopes import AGENT_SCOPES

ANYBODY = Caller(f"{AGENT}mcp", AGENT_SCOPES)
"""A client on this machine that was given no token."""


@dataclass(frozen=True, slots=True)
class Guest:
    """One client of the server. ``secret`` is its token, or empty; ``name`` what it calls itself, and
    ``line`` the connection that it calls on, which tells two of the same name apart."""

    secret: str = ""
    name: str = "agent"
    line: str = ""

    def caller(self, connection: sqlite3.Connection, now: str) -> Caller:
        """Who that is at ``now``. Looked up in the transaction that acts on it. Raises
        ``TokenRefused``."""
        return holder(connection, self.secret, now) if self.secret else ANYBODY

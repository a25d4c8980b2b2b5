"""Who may open the screen on a terminal elsewhere: holders of a token for it, and no agent.

Specified in ``docs/reference/connect.md``.
"""

from __future__ import annotations

import asyncio

from starlette.requests import HTTPConnection

from cockpit.access import user_presence
from cockpit.access.capability_tokens import TokenRefused, holder
from cockpit.access.http.guarded_protocol import PEER
from cockpit.access.principals import Caller
from cockpit.access.socket_peer import find_peers
from cockpit.access.token_scopes import SCREEN_OPEN, NotAllowed
from cockpit.core.clock import format_time
from cockpit.core.errors import CockpitError
from cockpit.store.db.database import Store
from cockpit.store.journal.details.store import ScreenOpened
from cockpit.store.journal.refused_requests import RefusedRequests

_ACTIVITY = "open the screen"


class TerminalCallers:
    """Finds the holder of a request's token. ``store`` has the tokens; without one every token is refused."""

    def __init__(self, store: Store | None, refused: RefusedRequests | None) -> None:
        self._store = store
        self._refused = refused

    async def authorise(self, connection: HTTPConnection) -> Caller:
        """Return who opens the screen, now. Raises ``TokenRefused`` and ``NotAllowed``."""
        try:
            caller = await self.find_holder(connection)
            await asyncio.to_thread(_require_no_agent, connection)
        except CockpitError as error:
            if self._refused is not None:
                await self._refused.add(error.code, str(error), f"GET {connection.url.path}")
            raise
        return caller

    async def find_holder(self, connection: HTTPConnection) -> Caller:
        """Return the holder of a token for the screen. Raises ``TokenRefused`` and ``NotAllowed``."""
        kind, _, secret = connection.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not secret.strip():
            raise TokenRefused(
                "Send Authorization: Bearer TOKEN; `cockpit tokens issue` makes one for screen.open.",
                code="token_missing",
            )
        store = self._store
        if store is None:
            raise NotAllowed(
                "A token is of one project, and this `cockpit web` was started in none."
            )
        now = format_time(store.clock.now())
        caller = await store.read(lambda reader: holder(reader, secret.strip(), now))
        if caller.kind == "agent":
            raise NotAllowed(f"{caller.namespace} may not {_ACTIVITY}: an agent decides nothing.")
        caller.require(SCREEN_OPEN, _ACTIVITY)
        return caller

    async def note_opened(self, caller: Caller, *, again: bool) -> None:
        """Write into the journal that a caller has the screen; ``again`` over another line."""
        store = self._store
        if store is not None:
            detail = ScreenOpened(cap_id=caller.cap_id, namespace=caller.namespace, again=again)
            await store.write(lambda tx: tx.journal(detail, actor=caller.namespace))


def _require_no_agent(connection: HTTPConnection) -> None:
    """Raise ``NotAllowed`` where an agent of this machine is at the other end."""
    peer = connection.scope.get("state", {}).get(PEER)
    client, server = connection.scope.get("client"), connection.scope.get("server")
    peers = [peer] if isinstance(peer, int) else []
    if client is not None and server is not None and server[1] is not None:
        peers = find_peers((client[0], client[1]), (server[0], server[1]))
    for pid in peers:
        if agent := user_presence.find_agent_above(pid):
            raise NotAllowed(f"The screen is for you alone, and {agent}.")

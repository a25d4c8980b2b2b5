"""A runtime on which nothing runs, for stories that are written by hand."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.loop.external_agent_interface import AgentEntry
from cockpit.loop.runtime import Runtime
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import Session


class Still(Runtime):
    """A real runtime over a story that was written by hand: it decides, and drives nothing."""

    async def run(self, session_id: str, **_: object) -> Session:
        return await self.store.read(lambda connection: sessions.load(connection, session_id))

    async def list_agents(self) -> Sequence[AgentEntry]:
        """Return no agent, whatever this machine has."""
        return ()

"""What the screen asks of the rooms beside the loop: tools, trust and knowledge, each behind a desk."""

from __future__ import annotations

from cockpit.loop.knowledge.knowledge_desk import KnowledgeDesk
from cockpit.loop.tools.tool_desk import ToolDesk
from cockpit.loop.trust.trust_desk import TrustDesk
from cockpit.loop.wave_context import Engine


class Desks:
    """The desks of an open project; a part of :class:`~cockpit.loop.runtime.Runtime`."""

    engine: Engine

    async def trust(self) -> TrustDesk:
        """Return what reads and decides the project's trust rules."""
        return TrustDesk(self.engine.store, self.engine.settings)

    async def tools(self) -> ToolDesk:
        """Return what reads and approves the project's tools."""
        return ToolDesk(self.engine.added, self.engine.settings)

    async def knowledge(self) -> KnowledgeDesk:
        """Return what searches the project's knowledge."""
        return KnowledgeDesk(self.engine)

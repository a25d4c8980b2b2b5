"""The services of a project that commands and the screen use: trust, tools, estimates, knowledge, notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

# Each is loaded where it is used: the screen opens a runtime before it is drawn.
if TYPE_CHECKING:
    from cockpit.loop.knowledge.knowledge_service import KnowledgeService
    from cockpit.loop.planner.planner_service import PlannerService
    from cockpit.loop.tools.tool_service import ToolService
    from cockpit.loop.wave_context import Engine


class Services:
    """The services of an open project; the base of :class:`~cockpit.loop.runtime.Runtime`."""

    engine: Engine

    async def tools(self) -> ToolService:
        """Return the service that reads and approves the project's tools."""
        from cockpit.loop.tools.tool_service import ToolService

        return ToolService(self.engine.added, self.engine.settings)

    async def planner(self) -> PlannerService:
        """Return the service that estimates sessions and tasks."""
        from cockpit.loop.planner.planner_service import PlannerService

        return PlannerService(self.engine)

    async def knowledge(self) -> KnowledgeService:
        """Return the service that searches the project's knowledge."""
        from cockpit.loop.knowledge.knowledge_service import KnowledgeService

        return KnowledgeService(self.engine)

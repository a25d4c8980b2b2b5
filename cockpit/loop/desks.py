"""What the screen asks of the rooms beside the loop: tools, trust, knowledge, notes, each behind a desk."""

from __future__ import annotations

from cockpit.loop.intake.task_type_layers import TaskTypeDesk
from cockpit.loop.knowledge.knowledge_desk import KnowledgeDesk
from cockpit.loop.notes.note_desk import NoteDesk
from cockpit.loop.planner.planner_desk import PlannerDesk
from cockpit.loop.session_state.guard_desk import GuardDesk
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

    async def planner(self) -> PlannerDesk:
        """Return what estimates sessions and tasks."""
        return PlannerDesk(self.engine)

    async def knowledge(self) -> KnowledgeDesk:
        """Return what searches the project's knowledge."""
        return KnowledgeDesk(self.engine)

    async def notes(self) -> NoteDesk:
        """Return what reads and decides notes."""
        return NoteDesk(self.engine.store, self.engine.settings)

    async def task_type_desk(self) -> TaskTypeDesk:
        """Return what explains the project's task types."""
        return TaskTypeDesk(self.engine.store, self.engine.settings, self.engine.place)

    async def guards(self) -> GuardDesk:
        """Return what reads and approves guards."""
        return GuardDesk(self.engine.store, self.engine.settings, self.engine.place)

"""What a session that the user starts about a task of the backlog gets to know of it.

See ``docs/reference/agents.md``, what was read.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from cockpit.learn.resume_text import briefing
from cockpit.loop.external_agent_interface import ExternalAgents
from cockpit.loop.intake.first_message import Opening
from cockpit.loop.wave_context import Engine
from cockpit.store.backlog import handoffs
from cockpit.store.backlog.tasks import Task
from cockpit.store.sessions.seen_files import select_seen


async def brief_on_task(
    engine: Engine, opened: Opening, task: Task, agents: Callable[[], ExternalAgents]
) -> Opening:
    """Return ``opened`` with where the task was left, and with what agents read for it."""
    before = await engine.store.read(
        lambda connection: handoffs.select_before(connection, task.task_id)
    )
    opened = replace(opened, text=f"{opened.text}\n\n{briefing(task, before)}")
    seen = await engine.store.read(lambda connection: select_seen(connection, task.task_id))
    if not seen or engine.settings.external_agents is None:
        return opened
    items, text = await agents().reads_before(engine, task.task_id, opened.scope_items)
    return replace(opened, text=f"{opened.text}{text}", scope_items=(*opened.scope_items, *items))

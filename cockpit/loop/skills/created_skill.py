"""A skill that the user has approved: trusted with exactly that content, and loaded at once.

See ``docs/reference/skills.md``, proposed skills.
"""

from __future__ import annotations

import asyncio

from cockpit.core.project.project_trust import trust_file
from cockpit.core.project_paths import OWN_FOLDER
from cockpit.core.skills import skill_layers
from cockpit.core.skills.skill import SKILL_FILE
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.skills.session_skills import refresh_skills, want_skill
from cockpit.loop.wave_context import WaveContext
from cockpit.store.sessions.outbox import OutboxAction

SKILL_TOOL = "create_skill"


def offers_skills(settings: RuntimeSettings) -> bool:
    """Whether agents may propose skills: where sessions load them."""
    return skill_layers.ENABLED and settings.skills_most > 0


async def adopt_skill(context: WaveContext, action: OutboxAction) -> None:
    """Trust the content of a skill that was written as the user approved it, and load it."""
    if action.action_type != SKILL_TOOL or action.phase != "confirmed":
        return
    payload, place = action.payload, context.engine.place
    content = str(payload["content"]).encode()
    name = str(payload["path"]).split("/")[-2]
    # By its content: in a worktree as well as in the main checkout, once the branch is merged.
    path = place.home / OWN_FOLDER / "skills" / name / SKILL_FILE
    await asyncio.to_thread(trust_file, place, path, content)
    await refresh_skills(context.engine)
    session_id = context.session.session_id
    await context.store.write(
        lambda tx: want_skill(tx, session_id, name, load=True, why="you approved it")
    )

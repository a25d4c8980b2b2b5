"""How near skills are to a wave's new words by the librarian's vectors, with the extra ``vector``.

It is read before the wave's transaction, which chooses skills and reads no files. See
``docs/reference/skills.md``, ranking.
"""

from __future__ import annotations

import sqlite3

from cockpit.core.skills import skill_layers
from cockpit.loop.skills.session_skills import read_news
from cockpit.loop.wave_context import WaveContext
from cockpit.observe.knowledge import embed_text


async def compare_skills(context: WaveContext) -> None:
    """Keep, for the wave's choice, how near each skill is to what the user wrote since the wave before."""
    words = context.store.read_now(lambda connection: _find_words(connection, context))
    project_skills = context.engine.skills
    if not words or project_skills.was_compared(words):
        return
    librarian, is_interactive = context.engine.librarian, context.session.interactive
    near = await librarian.compare_skills(words, indexes=is_interactive)
    project_skills.keep_nearness(words, near)
    if is_interactive:
        await librarian.embed_in_background()


def _find_words(connection: sqlite3.Connection, context: WaveContext) -> str:
    is_off = not skill_layers.ENABLED or context.engine.settings.skills_most <= 0
    if is_off or not embed_text.is_installed():
        return ""
    return read_news(connection, context).words

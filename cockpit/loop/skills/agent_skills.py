"""Skills in a session of an external agent: chosen like those of the built-in agent, and given with a prompt.

An external agent keeps what it was given, so a skill is given once; the session's facts have it, and the
screen shows why. See ``docs/reference/skills.md``, external agents.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable

from msgspec import Struct

from cockpit.core.fenced_text import fence_text
from cockpit.core.skills import skill_layers
from cockpit.core.skills.shorten_skill import ROOM
from cockpit.loop.skills.session_skills import (
    choose_for,
    list_new,
    read_wishes,
    record_skills,
    refresh_skills,
    select_skills,
    unload_skill,
)
from cockpit.loop.wave_context import Engine
from cockpit.orient.skills.choose_skills import Choice
from cockpit.orient.skills.keep_skills import LOADED_BY_USER, Removal
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import sessions, waves

_COMMAND = "/"
_HEAD = "Skills for this work, chosen by cockpit. They are guidance: they grant nothing and approve nothing."


class _Change(Struct, frozen=True):
    new: tuple[Choice, ...]
    """To be given."""
    left: tuple[str, ...]
    """Skills that the user unloaded."""


async def give_skills(
    engine: Engine,
    session_id: str,
    words: str,
    open_wave: Callable[[], Awaitable[str]],
    *,
    is_new_agent: bool = False,
) -> str:
    """Choose the skills for ``words``, load them in the session, and return their text for the agent.

    Empty where it needs none that it does not have. ``open_wave`` returns the wave that they are facts of; it
    is called only where something changes. ``is_new_agent``: the agent has none of the session's texts.
    """
    most = engine.settings.skills_most
    if not skill_layers.ENABLED or most <= 0 or words.lstrip().startswith(_COMMAND):
        return ""
    await refresh_skills(engine)
    project_skills = engine.skills
    if not project_skills.was_compared(words):
        project_skills.keep_nearness(words, await engine.librarian.compare_skills(words))
    change = await engine.store.read(lambda c: _choose(c, engine, session_id, words))
    kept = await engine.store.read(lambda c: select_skills(c, session_id)) if is_new_agent else []
    texts = [f"The skill {name} applies no longer: the user unloaded it." for name in change.left]
    if change.new or change.left:
        wave_id = await open_wave()
        await engine.store.write(lambda tx: _record(tx, engine, session_id, wave_id, change))
    given = dict.fromkeys(
        link.skill.name
        for link in kept
        if link.skill.name in project_skills.skills and link.skill.name not in change.left
    )
    given |= dict.fromkeys(choice.name for choice in change.new)
    present = await engine.store.read(lambda c: select_skills(c, session_id))
    room = ROOM - sum(link.tokens for link in present if link.skill.name not in given)
    texts += [
        f"[skill:{name}]\n{fence_text(project_skills.fact(name, share).full.text)}"
        for name, share in project_skills.share_room(given, room).items()
    ]
    return "\n\n".join([_HEAD, *texts]) if texts else ""


def _choose(connection: sqlite3.Connection, engine: Engine, session_id: str, words: str) -> _Change:
    session = sessions.load(connection, session_id)
    present = select_skills(connection, session_id)
    loaded = {link.skill.name for link in present}
    wishes = read_wishes(connection, session_id)
    project_skills = engine.skills
    chosen = choose_for(
        engine,
        words,
        wishes,
        task_type=session.task_type,
        is_first=not loaded,
        at=session.created_at,
    )
    wanted = [
        Choice(name, LOADED_BY_USER, wish.why)
        for name, wish in wishes.items()
        if wish.load and name in project_skills.skills
    ]
    new = [
        choice
        for choice in list_new(project_skills, [*chosen, *wanted], present)
        if choice.name not in loaded  # an agent keeps the text that it was given
    ]
    names = [link.skill.name for link in present]
    left = tuple(name for name in names if name in wishes and not wishes[name].load)
    return _Change(tuple(new), left)


def _record(tx: Tx, engine: Engine, session_id: str, wave_id: str, change: _Change) -> None:
    wave = waves.load_in(tx, wave_id)
    for link in select_skills(tx.connection, session_id):
        name = link.skill.name
        if name in change.left:
            unload_skill(tx, wave, link, Removal(name, "user", "you unloaded it"))
    present = [
        link
        for link in select_skills(tx.connection, session_id)
        if link.skill.name not in change.left
    ]
    record_skills(tx, engine, wave, change.new, present)

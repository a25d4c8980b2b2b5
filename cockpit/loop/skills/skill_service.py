"""What the screen shows of skills: those that a session has and why, and those that it could load.

See ``docs/reference/skills.md``, screen.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping

from msgspec import Struct

from cockpit.core.skills.skill import Skill
from cockpit.loop.skills.project_skills import ProjectSkills, shorten_for_packet
from cockpit.loop.skills.session_skills import (
    ASKED,
    ASKED_WHY,
    Wish,
    read_named,
    read_wishes,
    select_skills,
    want_skill,
)
from cockpit.store.db.database import Store
from cockpit.store.journal.event_types import Action

_ORDER = {"named": 1, "available": 2}


class ListedSkill(Struct, frozen=True):
    """A skill as the screen lists it."""

    name: str
    description: str
    state: str
    """``loaded``, ``named``, ``waits`` (from the next wave on), ``leaves`` (likewise) or ``available``."""
    why: str
    """Why it is loaded or named, or was unloaded last."""
    tokens: int
    """Tokens of what is in the packet, or would be when it is loaded."""
    layer: str
    replaces: str
    folder: str
    files: tuple[str, ...]
    core: str


class SkillOverview(Struct, frozen=True):
    """The skills of a project as one session has them."""

    skills: tuple[ListedSkill, ...] = ()
    """The loaded ones first, then the named ones, then by name."""
    problems: tuple[str, ...] = ()
    """One sentence for each skill that is not used."""


class SkillService:
    """Reads the skills of a project, and loads and unloads them in a session for the user."""

    def __init__(self, store: Store, project_skills: ProjectSkills) -> None:
        self._store = store
        self._project_skills = project_skills

    async def read_overview(self, session_id: str) -> SkillOverview:
        """Read all skills, and what the session has of them; '' is not a session."""
        loaded = await asyncio.to_thread(self._project_skills.refresh)
        state = await self._store.read(lambda connection: _read_state(connection, session_id))
        rows = [self._describe(skill, state) for skill in loaded.skills.values()]
        rows.sort(key=lambda row: (_ORDER.get(row.state, 0), row.name))
        untrusted = [
            f"{path} is not trusted; `cockpit trust` shows it." for path in loaded.untrusted
        ]
        return SkillOverview(tuple(rows), (*untrusted, *loaded.problems))

    async def toggle(self, session_id: str, skill: ListedSkill) -> None:
        """Load a skill that the session does not have, or unload it, from the next wave on."""
        load = skill.state in ("available", "named", "leaves")
        await self._store.write(lambda tx: want_skill(tx, session_id, skill.name, load=load))

    def _describe(self, skill: Skill, state: _State) -> ListedSkill:
        kind = _find_state(skill.name, state)
        fact = self._project_skills.fact(skill.name)
        return ListedSkill(
            skill.name,
            skill.description,
            kind,
            state.reasons.get(skill.name, ""),
            fact.cost.full,
            skill.layer,
            skill.replaces,
            str(skill.folder),
            skill.files,
            shorten_for_packet(skill),
        )


class _State(Struct, frozen=True):
    loaded: frozenset[str]
    named: frozenset[str]
    wishes: Mapping[str, Wish]
    reasons: Mapping[str, str]


def _read_state(connection: sqlite3.Connection, session_id: str) -> _State:
    if not session_id:
        return _State(frozenset(), frozenset(), {}, {})
    present = select_skills(connection, session_id)
    loaded = frozenset(link.skill.name for link in present)
    named = frozenset(read_named(connection, session_id)) - loaded
    rows = connection.execute(
        "SELECT json_extract(detail_json,'$.name'), json_extract(detail_json,'$.why') FROM journal"
        " WHERE action=? AND +session_id=?"
        " AND json_extract(detail_json,'$.status') NOT IN ('wanted','unwanted') ORDER BY seq",
        (str(Action.SKILL_CHANGED), session_id),
    )
    reasons = {str(name): str(why) for name, why in rows}
    reasons |= {link.skill.name: ASKED_WHY for link in present if link.skill.how == ASKED}
    return _State(loaded, named, read_wishes(connection, session_id), reasons)


def _find_state(name: str, state: _State) -> str:
    wish, is_loaded = state.wishes.get(name), name in state.loaded
    if wish is not None and wish.load != is_loaded:
        return "waits" if wish.load else "leaves"
    if is_loaded:
        return "loaded"
    return "named" if name in state.named else "available"

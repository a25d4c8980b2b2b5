"""The skills of a project as one session has them, and those that it could load.

See ``docs/reference/skills.md``, screen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

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
)
from cockpit.store.journal.event_types import Action

_ORDER = {"named": 1, "available": 2}


class ListedSkill(Struct, frozen=True):
    """A skill, and what the session, or a task that it is chosen for, has of it."""

    skill: Skill
    state: str
    """``loaded``, ``named``, ``waits`` (from the next wave on), ``leaves`` (likewise) or ``available``."""
    why: str
    """Why it is loaded or named, or was unloaded last."""
    tokens: int
    """Tokens of what is in the packet, or would be when it is loaded."""
    core: str
    score: float | None = None
    """How well it fits the task that it is chosen for."""


def list_skills(
    connection: sqlite3.Connection | None, project_skills: ProjectSkills, session_id: str
) -> Sequence[ListedSkill]:
    """Return all skills, and what the session has of them: the loaded ones first; '' is not a session."""
    state = _read_state(connection, session_id)
    rows = [
        ListedSkill(
            skill,
            _find_state(skill.name, state),
            state.reasons.get(skill.name, ""),
            project_skills.fact(skill.name).cost.full,
            shorten_for_packet(skill),
        )
        for skill in project_skills.skills.values()
    ]
    return sorted(rows, key=lambda row: (_ORDER.get(row.state, 0), row.skill.name))


class _State(Struct, frozen=True):
    loaded: frozenset[str]
    named: frozenset[str]
    wishes: Mapping[str, Wish]
    reasons: Mapping[str, str]


def _read_state(connection: sqlite3.Connection | None, session_id: str) -> _State:
    if connection is None or not session_id:
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

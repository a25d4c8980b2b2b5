"""Which of cockpit's rare tools a session is offered: those that its task or what happened in it calls for.

A model takes what it is offered, so a tool that few tasks need is described only where something asks for it.
See ``docs/reference/actions.md``, rare tools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from cockpit.act.model_tools import GROW, RESUME

PROFILE_CHANGE = "propose_profile_change"
SKILL = "create_skill"
GITHUB = "github"
RARE = (GITHUB, SKILL, GROW, RESUME, PROFILE_CHANGE)
"""The tools that a session is offered only with a reason. A session may call them without an offer."""

_ABOUT: Mapping[str, re.Pattern[str]] = {
    SKILL: re.compile(r"\bskills?\b", re.IGNORECASE),
    GROW: re.compile(
        r"\b(?:adopt|build|create|grow|lack|make|missing|need|new|propose|write)\w*\b[^.\n]{0,30}\btools?\b",
        re.IGNORECASE,
    ),
    PROFILE_CHANGE: re.compile(r"\b(?:attention profile|profile change)", re.IGNORECASE),
}
"""Words of the user that are about a tool's subject."""
_ABILITIES = ("docs:", "knowledge:", "skill:")
"""Scope items that look for how something is done."""
_IS_BINARY = re.compile(r"'([^'\n]+)' is binary")
_LONGEST_WHY = 80


class Attempt(Struct, frozen=True):
    """One call of the agent and its end."""

    call: str
    scope: tuple[str, ...]
    """The items that it asked to read."""
    result: str


class Evidence(Struct, frozen=True):
    """What decides which rare tools a session is offered in a wave."""

    allowed: frozenset[str] = frozenset(RARE)
    """The tools that the session may call with its task type and in its role."""
    task_type: str = ""
    type_lines: tuple[str, ...] = ()
    """The lines of the task type that name tools which help."""
    words: str = ""
    """All that the user has written in the session."""
    on_github: bool = False
    attempts: tuple[Attempt, ...] = ()
    """The calls of the wave before."""
    lost: str = ""
    """What the packets of the waves before lacked; empty: nothing."""
    keeps_action: bool = False


def choose_rare_tools(evidence: Evidence, before: Mapping[str, str]) -> dict[str, str]:
    """Return why each rare tool is offered, by name. Pure; what was offered ``before`` stays."""
    reasons: dict[str, str] = {}
    for name in RARE:
        if any(f"`{name}`" in line for line in evidence.type_lines):
            reasons[name] = f"tasks of type {evidence.task_type} use it"
        elif name in _ABOUT and _ABOUT[name].search(evidence.words):
            reasons[name] = "your words are about it"
        elif any(attempt.call == name for attempt in evidence.attempts):
            reasons[name] = "the agent called it"
    happened = {
        GITHUB: "the project is on GitHub" if evidence.on_github else "",
        GROW: find_missing_ability(evidence.attempts),
        RESUME: "an action is kept" if evidence.keeps_action else "",
        PROFILE_CHANGE: evidence.lost,
    }
    reasons = {name: why for name, why in happened.items() if why} | reasons | dict(before)
    return {name: reasons[name] for name in RARE if name in reasons and name in evidence.allowed}


def find_missing_ability(attempts: Sequence[Attempt]) -> str:
    """Return what an attempt lacked: knowledge that is nowhere, or a way to read a file; '' for neither."""
    for attempt in attempts:
        for item in attempt.scope:
            # Results list what could not be read as "ITEM: REASON".
            if item.startswith(_ABILITIES) and f"{item}: " in attempt.result:
                return f"{item} found nothing"[:_LONGEST_WHY]
        binary = _IS_BINARY.search(attempt.result) if attempt.scope else None
        if binary is not None:
            return f"{binary[1]} is no text"[:_LONGEST_WHY]
    return ""

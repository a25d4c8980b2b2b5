"""Whether a loaded skill is still relevant: after a new message, and after waves that did not use it.

See ``docs/reference/skills.md``, in the packet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from cockpit.core.skills.skill import Skill
from cockpit.orient.skills.choose_skills import LEAST_SCORE, LEAST_SHARE, Choice
from cockpit.orient.skills.rank_skills import SkillIndex, rank_skills
from cockpit.orient.skills.stem_words import faint_stems, stem_words

UNUSED_WAVES = 6
"""A skill that so many waves in a row did not use is unloaded."""
_LEAST_WORDS = 2
"""Words of its description that a wave must have to use a skill without keywords."""
LOADED_BY_USER = "user"


class LoadedSkill(Struct, frozen=True):
    """A skill that the session has."""

    name: str
    how: str
    """How it was chosen, as :attr:`~cockpit.orient.skills.choose_skills.Choice.how`."""
    since: int
    """The wave that loaded it."""


class Removal(Struct, frozen=True):
    """A skill that is to be unloaded, and why."""

    name: str
    how: str
    why: str


def find_drifted(
    loaded: Sequence[LoadedSkill],
    chosen: Sequence[Choice],
    index: SkillIndex,
    message: str,
    *,
    most: int,
    recently_used: frozenset[str] = frozenset(),
) -> tuple[Removal, ...]:
    """Return the loaded skills that a new message leaves behind.

    A message that loads no skill leaves all as they are: "yes, go on" is no new topic. What the message
    matches nearly as well, what the user loaded and what the waves before used stays, as long as there is
    room.
    """
    names = [choice.name for choice in chosen if not choice.is_named]
    new = [name for name in names if name not in {skill.name for skill in loaded}]
    if not new:
        return ()
    scores = {each.name: each.score for each in rank_skills(index, message)}
    best = max(scores.values(), default=0)
    mentioned = next((choice.name for choice in chosen if choice.how == "mention"), "")
    removals: list[Removal] = []
    kept: list[LoadedSkill] = []
    for skill in loaded:
        if (
            skill.how == LOADED_BY_USER
            or skill.name in names
            or scores.get(skill.name, 0) * 100 >= max(best * LEAST_SHARE, 100 * LEAST_SCORE)
        ):
            kept.append(skill)
        elif mentioned:
            why = f"you mentioned {mentioned} instead"
            removals.append(Removal(skill.name, "mention", why))
        elif skill.name not in recently_used:
            removals.append(Removal(skill.name, "drift", f"the task moved on to {', '.join(new)}"))
        else:
            kept.append(skill)
    own = [skill for skill in kept if skill.how != LOADED_BY_USER and skill.name not in names]
    over = sum(skill.how != LOADED_BY_USER for skill in kept) + len(new) - most
    for skill in sorted(own, key=lambda each: (each.since, each.name))[: max(over, 0)]:
        removals.append(Removal(skill.name, "room", f"to make room for {', '.join(new)}"))
    return tuple(removals)


def find_unused(
    loaded: Sequence[LoadedSkill],
    skills: Mapping[str, Skill],
    ordinal: int,
    activity: Sequence[str],
) -> tuple[Removal, ...]:
    """Return the loaded skills that none of the last waves used.

    ``activity`` is what the agent wrote and called in each of the last :data:`UNUSED_WAVES` waves.
    """
    removals = []
    for skill in loaded:
        if skill.how == LOADED_BY_USER or ordinal - skill.since < UNUSED_WAVES:
            continue
        if skill.name in skills and any(uses_skill(skills[skill.name], text) for text in activity):
            continue
        why = f"{UNUSED_WAVES} waves did not use it"
        removals.append(Removal(skill.name, "unused", why))
    return tuple(removals)


def uses_skill(skill: Skill, text: str) -> bool:
    """Whether what an agent wrote or called has to do with the skill."""
    if f"skill:{skill.name}" in text:
        return True
    words = stem_words(text)
    strong = stem_words(" ".join((skill.name, *skill.keywords)))
    if words & strong - faint_stems():
        return True
    return len((words - faint_stems()) & stem_words(skill.description)) >= _LEAST_WORDS

"""The skills of one project as its sessions use them: read once, and again when a file changed.

See ``docs/reference/skills.md``, layers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cockpit.core.project.project_trust import PROJECT_SKILLS, TRUST_FILE
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.secrets import mask
from cockpit.core.skills.shorten_skill import LEAST, ROOM, shorten_skill
from cockpit.core.skills.skill import Skill, describe_skill
from cockpit.core.skills.skill_layers import (
    LoadedSkills,
    SkillPlace,
    list_places,
    load_skills,
    stamp_places,
)
from cockpit.observe.count_tokens import count_tokens
from cockpit.observe.rendered_cost import with_cost
from cockpit.orient.skills.rank_skills import SkillIndex, build_index
from cockpit.store.context.facts import Fact, Level

SOURCE = "skill"
BAND = "capabilities"
_UTILITY = 900_000
_FENCE_TOKENS = 40
"""Tokens that a prompt puts round a skill."""
_MOST_KEPT = 16
"""Texts whose nearness to skills is kept: those of the sessions that run now."""


class ProjectSkills:
    """The skills of a project, kept in memory. :meth:`refresh` reads files; all else does not."""

    def __init__(self, places: Sequence[SkillPlace], trust_file: Path | None = None) -> None:
        self._places = tuple(places)
        self._trust_file = trust_file
        self._stamp: object = None
        self._loaded = LoadedSkills({})
        self._index: SkillIndex | None = None
        self._facts: dict[tuple[str, int], Fact] = {}
        self._nearness: dict[str, Mapping[str, float]] = {}

    def refresh(self) -> LoadedSkills:
        """Read the skills again if a file was added, changed or removed, or is trusted now. Blocks."""
        stamp = (stamp_places(self._places), _stamp_file(self._trust_file))
        if stamp != self._stamp:
            self._loaded, self._index = load_skills(self._places), None
            self._facts.clear()
            self._stamp = stamp
        return self._loaded

    @property
    def was_read(self) -> bool:
        """Whether the skills were read at all."""
        return self._stamp is not None

    @property
    def skills(self) -> Mapping[str, Skill]:
        """The skills by name, as they were read last."""
        return self._loaded.skills

    @property
    def loaded(self) -> LoadedSkills:
        """The skills and what became of the others, as they were read last."""
        return self._loaded

    @property
    def index(self) -> SkillIndex:
        """The index over the skills that were read last."""
        if self._index is None:
            self._index = build_index(self._loaded.skills.values())
        return self._index

    def keep_nearness(self, words: str, nearness: Mapping[str, float]) -> None:
        """Keep how near each skill is to ``words`` by vectors, from 0 to 1, by name."""
        while len(self._nearness) >= _MOST_KEPT:
            del self._nearness[next(iter(self._nearness))]
        self._nearness[words] = nearness

    def was_compared(self, words: str) -> bool:
        """Whether :meth:`keep_nearness` was called for ``words``, and not too many since."""
        return words in self._nearness

    def nearness(self, words: str) -> Mapping[str, float]:
        """Return how near each skill is to ``words``; empty where that is not known."""
        return self._nearness.get(words, {})

    def folders(self) -> Mapping[str, Path]:
        """Return the folder of each skill by name, for the gateway."""
        return {name: skill.folder for name, skill in self.skills.items()}

    def fact(self, name: str, room: int = ROOM) -> Fact:
        """Return the skill as a fact of a session that has ``room`` tokens for it, its secrets masked.

        Raises ``KeyError``.
        """
        if (name, room) not in self._facts:
            fits = room < ROOM and self.fact(name).cost.full <= room
            self._facts[name, room] = (
                self.fact(name) if fits else make_skill_fact(self.skills[name], room)
            )
        return self._facts[name, room]

    def share_room(self, names: Iterable[str], room: int) -> dict[str, int]:
        """Return how many of ``room`` tokens each skill may take: the shorter ones leave theirs to others."""
        shares: dict[str, int] = {}
        ordered = sorted(dict.fromkeys(names), key=lambda name: (self.fact(name).cost.full, name))
        for at, name in enumerate(ordered):
            shares[name] = min(ROOM, max(room // (len(ordered) - at), LEAST))
            room -= self.fact(name, shares[name]).cost.full
        return shares


def open_project_skills(
    place: ProjectPaths, user_dir: Path, environment: Mapping[str, str]
) -> ProjectSkills:
    """Return the skills of a project; nothing is read yet. ``environment`` names the home directory."""
    user_home = Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - may be relative
    places = list_places(place.home, user_dir, user_home)
    if place.root != place.home:
        # What a task's worktree brings counts there, with contents that are trusted.
        places += tuple(SkillPlace("project", place.root / name) for name in PROJECT_SKILLS)
    return ProjectSkills(places, place.state / TRUST_FILE)


def shorten_for_packet(skill: Skill, room: int = ROOM) -> str:
    """Return what enters a packet that has ``room`` tokens for the skill: its body, or start and outline."""
    around = count_tokens(describe_skill(skill, "")) + _FENCE_TOKENS
    return shorten_skill(skill, max(room - around, 0), count_tokens)


def make_skill_fact(skill: Skill, room: int = ROOM) -> Fact:
    """Return a skill's core as a fact of the capabilities band, fenced where it is rendered."""
    text = mask(describe_skill(skill, shorten_for_packet(skill, room)))
    brief = mask(" ".join(f"skill {skill.name}: {skill.description}".split()))[:200]
    headings = [line for line in text.splitlines() if line.startswith("#")]
    outline = "\n".join([brief, *headings])
    return with_cost(
        Fact(
            source_type=SOURCE,
            source_ref=f"skill:{skill.name}",
            band=BAND,
            full=Level(text, count_tokens(text)),
            outline=Level(outline, count_tokens(outline))
            if len(outline) < len(text) // 2
            else None,
            reference=Level(brief, count_tokens(brief)),
            provenance={"layer": skill.layer, "sha256": skill.digest},
            dedupe_key=f"skill:{skill.name}",
            utility=_UTILITY,
        )
    )


def _stamp_file(path: Path | None) -> tuple[int, int]:
    try:
        status = path.stat() if path is not None else None
    except OSError:
        status = None
    return (status.st_mtime_ns, status.st_size) if status is not None else (0, 0)

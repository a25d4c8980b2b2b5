"""Skills as the short lines by which vectors compare them with a task, and what no skill is for.

A vector of a whole skill averages over all that it is for, so each topic of its description has a line of
its own. See ``docs/reference/skills.md``, ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cockpit.core.skills.skill import Skill
from cockpit.observe.knowledge.index_store import KnowledgeIndex
from cockpit.observe.knowledge.nearest_chunks import NearestChunks
from cockpit.observe.knowledge.passage import ROUTE
from cockpit.observe.knowledge.refresh_index import StoredDocument
from cockpit.observe.knowledge.search_index import compare_lines
from cockpit.orient.skills.rank_skills import NO_SKILL

_SKILL = "skill:"
_NONE = "none"
_NEAREST_LINES = 3
"""So many lines of a skill count, the nearest: one alone may be near by chance."""
_MOST_TOPICS = 24
_TOPIC_ENDS = re.compile(r"[:,.;]\s")
_NO_SKILL_LINES = (
    "a greeting, thanks or small talk",
    "yes, continue with that",
    "a question about what a file or a function in this repository does",
    "find where something is defined in the code",
    "change a constant, a default value or a text label",
    "add a command line option or an argument",
    "a small change to one line of code",
    "rename or remove an unused variable or argument",
    "count or list files and lines",
    "add, move or hide a field or a button",
    "sort or filter the items of a list",
    "general knowledge, weather, jokes",
    "which files import or use this module?",
    "what is in this folder?",
    "why has this setting this value?",
    "what does this function do or return?",
    "where is this value set or defined?",
    "rename a class, a variable or a heading",
    "replace a word or a label by another one",
    "how many files or lines are there?",
    "show or list some records",
    "explain what this function does",
)


def describe_routes(skills: Iterable[Skill]) -> list[StoredDocument]:
    """Return a document of lines for each skill that may be chosen unasked, and that of no skill."""
    routes = [
        StoredDocument(ROUTE, f"{_SKILL}{skill.name}", "", "\n".join(_list_lines(skill)))
        for skill in skills
        if not skill.only_by_name
    ]
    return [*routes, StoredDocument(ROUTE, _NONE, "", "\n".join(_NO_SKILL_LINES))]


def compare_routes(index: KnowledgeIndex, nearest: NearestChunks, words: str) -> dict[str, float]:
    """Return how near each skill is to ``words``, by name, and under :data:`NO_SKILL` what needs none.

    A skill's is the mean of the cosines of its nearest lines.
    """
    near: dict[str, float] = {}
    for ref, cosines in compare_lines(index, nearest, words, ROUTE).items():
        if ref == _NONE:
            near[NO_SKILL] = max(cosines.values())
        else:
            near[ref.removeprefix(_SKILL)] = _join(cosines.values())
    return near


def _list_lines(skill: Skill) -> list[str]:
    """Return the lines of a skill, of which none is empty."""
    name = skill.name.replace("-", " ")
    description = " ".join(skill.description.split())
    purpose = description.partition(" Use ")[0]
    topics = [topic.strip() for topic in _TOPIC_ENDS.split(description)]
    named = ", ".join(skill.keywords) or name
    return [
        f"{name}: {description}",
        f"{name}: {purpose}",
        " ".join(named.split()),
        *(f"{name}: {topic}" for topic in topics[:_MOST_TOPICS] if topic),
        *skill.examples,
    ]


def _join(cosines: Iterable[float]) -> float:
    nearest = sorted(cosines, reverse=True)[:_NEAREST_LINES]
    return round(sum(nearest) / len(nearest), 4)

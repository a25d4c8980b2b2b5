"""Choose the skills of a task: those that are mentioned, else those that match, within the type's scope.

See ``docs/reference/skills.md``, choosing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.skills.skill import Skill
from cockpit.orient.skills.rank_skills import (
    NO_SKILL,
    SCALE,
    RankedSkill,
    SkillIndex,
    find_best_skill,
    rank_skills,
)
from cockpit.orient.skills.stem_words import IDLE_WORDS

MOST_SKILLS = 3
"""Skills that are loaded or named at once, beside those that the user loads."""
LEAST_SCORE = 2_400
"""A skill with a lower score by words says nothing about the task."""
SURE_SCORE = 4_500
"""From this score by words on, the best skill is loaded in full."""
ASKED_SCORE = 5_200
"""The same for a question about a fact: what it names is not what is to be done."""
VECTOR_LEAST = -4_000
VECTOR_SURE = 2_000
"""The same where vectors add to the score."""
NO_SKILL_WEIGHT = 30_000
"""How much a task's nearness to tasks that need no skill, from 0 to 1, adds to what vectors have to reach."""
LEAST_SHARE = 70
"""Percent of the score of a better skill, which the user mentioned or refused, that a further one needs."""
NAMED_SHARE = 60
"""Percent of the best score that a skill needs to be named, by words."""
VECTOR_NAMED_SHARE = 40
"""The same where vectors add to the score, which takes them further apart."""
TYPE_BONUS = 2_000
"""Added to a skill that names the task's type."""
EXCLUDE = "!"
"""The sign before a pattern of a scope that leaves skills out."""


class Choice(Struct, frozen=True):
    """A skill that is to be loaded or named, and why."""

    name: str
    how: str
    """``mention``, ``match``, ``type`` or ``user``."""
    why: str
    """For the user, as ``you mentioned it``."""
    score: int = 0
    """In thousandths; 0 for a skill that was not ranked."""
    is_named: bool = False
    """Whether it is not loaded: the user sees that it may fit, and the agent is not told."""


class Mentions(Struct, frozen=True):
    """The skills that a text names."""

    wanted: tuple[str, ...] = ()
    """In their order in the text."""
    refused: frozenset[str] = frozenset()
    """Those that it asks not to use."""


class Scope(Struct, frozen=True):
    """Which skills a task type allows: all lists of patterns must match. Without a list, every skill."""

    patterns: tuple[tuple[str, ...], ...] = ()

    def allows(self, name: str) -> bool:
        """Whether the skill ``name`` is in the scope."""
        return all(_matches(name, patterns) for patterns in self.patterns)


_FACT = re.compile(r"\s*(?:where|which|what|who|how\s+many|show|list)\b", re.IGNORECASE)
_NEVER = re.compile(r"\b(?:don'?t|do not|never|without|avoid|neither|nor)\b", re.IGNORECASE)
_CLAUSES = re.compile(
    r"[.;:!?]\s|\n|,?\s(?:and\s)?(?:then|afterwards|finally|also)\s", re.IGNORECASE
)
"""Between steps of a task."""
_MOST_CLAUSES = 8
_CLAUSE_END = re.compile(r"[.;:!?]\s|\bbut\b|\binstead\b|\bthen\b", re.IGNORECASE)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    allowed = [pattern for pattern in patterns if not pattern.startswith(EXCLUDE)]
    excluded = [pattern[1:] for pattern in patterns if pattern.startswith(EXCLUDE)]
    is_in = any(fnmatchcase(name, pattern) for pattern in allowed) or (
        not allowed and bool(excluded)
    )
    return is_in and not any(fnmatchcase(name, pattern) for pattern in excluded)


def find_mentions(words: str, names: Iterable[str]) -> Mentions:
    """Find the skills that ``words`` name: ``$git``, ``/git``, ``use git to …``, ``the git skill``.

    A name alone is not a mention: it counts when skills are ranked. A hyphen may be a space.
    """
    text = " ".join(words.split())
    wanted: list[tuple[int, str]] = []
    refused: set[str] = set()
    lower = text.casefold()
    for name in names:
        spaced = name.replace("-", " ")
        if name not in lower and spaced not in lower:
            continue
        sign, verb, never = _patterns(name)
        match = sign.search(text)
        if match is None and name not in IDLE_WORDS:  # "use the parser" names no skill "the"
            match = verb.search(text)
        if never.search(text):
            refused.add(name)
        elif match:
            if _NEVER.search(_CLAUSE_END.split(text[: match.start()])[-1]):
                refused.add(name)
            else:
                wanted.append((match.start(), name))
    return Mentions(tuple(name for _, name in sorted(wanted)), frozenset(refused))


@lru_cache(maxsize=1_000)
def _patterns(name: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    spelled = re.escape(name).replace(r"\-", r"[-\s]")
    end = r"(?![\w-]|\.\w|/)"
    sign = re.compile(rf"(?:^|(?<=[\s(,;]))[$/]{re.escape(name)}{end}", re.IGNORECASE)
    verb = re.compile(
        rf"\b(?:use|using|apply|follow|load)\s+(?:the\s+|our\s+|my\s+|your\s+)?[`\"']?{spelled}{end}"
        rf"|\b(?:skill|skills?:)\s+[`\"']?{spelled}{end}|\b{spelled}[`\"']?\s+skill\b",
        re.IGNORECASE,
    )
    never = re.compile(
        rf"\b(?:don'?t|do\s+not|never|without|not)\s+(?:use|using|load|loading|apply|follow)\s+"
        rf"(?:the\s+|our\s+|any\s+)?[`\"']?{spelled}{end}"
        rf"|\b(?:no|without(?:\s+the)?)\s+[`\"']?{spelled}[`\"']?\s+skill\b",
        re.IGNORECASE,
    )
    return sign, verb, never


def choose_skills(
    skills: Mapping[str, Skill],
    index: SkillIndex,
    words: str,
    *,
    task_type: str = "",
    scope: Scope | None = None,
    most: int = MOST_SKILLS,
    never: Collection[str] = (),
    unloaded: Collection[str] = (),
    vectors: Mapping[str, float] | None = None,
) -> tuple[Choice, ...]:
    """Choose at most ``most`` skills for a task of ``words``: those to load, then those to name. Pure.

    Of those that match, the best is loaded where its score makes it sure, and the best of each step of the
    task likewise; others are named. What the user mentions is loaded whatever the scope. ``never`` are
    skills that only a mention brings back, and ``unloaded`` those that the user unloaded since ``words``.
    """
    if most <= 0 or not skills:
        return ()
    scope = scope or Scope()
    mentions = find_mentions(words, skills)
    wanted = [name for name in mentions.wanted if name not in unloaded][:most]
    chosen = [Choice(name, "mention", "you mentioned it") for name in wanted]
    taken = {choice.name for choice in chosen} | mentions.refused | {*never, *unloaded}
    ranked = {each.name: each for each in rank_skills(index, words, vectors)}
    bars = _find_bars(words, vectors or {})
    fitting: list[Choice] = []
    for name, skill in skills.items():
        if name in taken or skill.only_by_name or not scope.allows(name):
            continue
        score = ranked[name].score if name in ranked else 0
        if task_type and task_type in skill.task_types:
            fitting.append(_choose_by_type(name, score, task_type, bars, ranked))
        elif name in ranked and score >= bars.least:
            fitting.append(Choice(name, "match", _explain(ranked[name]), score))
    fitting.sort(key=lambda choice: (-choice.score, choice.name))
    # Skills that the user mentioned, unloaded or refused count here: their runner-up does not replace them.
    settled = max((ranked[name].score for name in taken if name in ranked), default=0)
    leading = _find_leading(index, words)
    best = max([settled, *(choice.score for choice in fitting)])
    loaded: list[Choice] = []
    named: list[Choice] = []
    for choice in fitting:
        is_near = choice.score * 100 >= settled * LEAST_SHARE
        is_best = choice is fitting[0] or choice.name in leading
        if choice.how == "type" or (is_best and is_near and choice.score >= bars.sure):
            loaded.append(choice)
        elif choice.name in leading or (is_near and choice.score * 100 >= best * bars.share):
            named.append(replace(choice, is_named=True))
    return tuple([*chosen, *loaded, *named][:most])


class _Bars(Struct, frozen=True):
    """The scores from which on a skill is named and loaded."""

    least: int
    sure: int
    share: int
    """Percent of the best score that a skill needs to be named."""


def _find_bars(words: str, vectors: Mapping[str, float]) -> _Bars:
    """Return the bars for a task: the higher, the nearer it is to those that need no skill."""
    if not vectors:
        sure = ASKED_SCORE if _FACT.match(words) else SURE_SCORE
        return _Bars(LEAST_SCORE, sure, NAMED_SHARE)
    more = round(NO_SKILL_WEIGHT * max(0.0, vectors.get(NO_SKILL, 0.0)))
    return _Bars(VECTOR_LEAST + more, VECTOR_SURE + more, VECTOR_NAMED_SHARE)


def _choose_by_type(
    name: str, score: int, task_type: str, bars: _Bars, ranked: Mapping[str, RankedSkill]
) -> Choice:
    """Return a skill that names the task's type: by its words, where these alone would bring it."""
    if score >= bars.sure:
        return Choice(name, "match", _explain(ranked[name]), score + TYPE_BONUS)
    return Choice(name, "type", f"task type {task_type}", max(score + TYPE_BONUS, bars.least))


def _explain(ranked: RankedSkill) -> str:
    if ranked.words:
        return f"it matches {', '.join(ranked.words)}"
    return "what it is for is near to the task"


def _find_leading(index: SkillIndex, words: str) -> frozenset[str]:
    """Return the skills that match a clause of a task of several best: "read the PDF, then squash it"."""
    clauses = [clause for clause in _CLAUSES.split(words) if clause.strip()]
    if len(clauses) < 2:
        return frozenset()
    best = (find_best_skill(index, clause, SURE_SCORE) for clause in clauses[:_MOST_CLAUSES])
    return frozenset(name for name in best if name)


def format_score(score: int) -> str:
    """Return a score as text, as ``4.2``."""
    return f"{score / SCALE:.1f}"

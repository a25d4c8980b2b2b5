"""Rank skills by the words of a task: rare words of names, keywords and descriptions, in whole numbers.

It needs no index and no model. Scores of vectors may be handed in, and are added. Pure: the same skills and
words give the same ranking in every process. See ``docs/reference/skills.md``, ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import log

from msgspec import Struct, field

from cockpit.core.skills.skill import Skill
from cockpit.orient.skills.related_words import related_stems
from cockpit.orient.skills.stem_words import faint_stems, stem, stem_words

NAME_WEIGHT = 2.2
KEYWORD_WEIGHT = 1.6
NAME_PART_WEIGHT = 1.2
"""Weight of one word of a name of several: "load" alone is not the skill for load testing."""
DESCRIPTION_WEIGHT = 1.0
EXAMPLE_WEIGHT = 0.5
"""Weight of a word of an example request, which may be there by chance."""
KEYWORD_PART_WEIGHT = 0.9
"""Weight of one word of a keyword of several."""
PART_WEIGHTS = {NAME_WEIGHT: NAME_PART_WEIGHT, KEYWORD_WEIGHT: KEYWORD_PART_WEIGHT}
"""By the weight of the whole: that of one word of several."""
FAINT_WEIGHT = 0.3
"""Share of a word that counts which nearly every task may have."""
RELATED_WEIGHT = 0.5
"""Share of a related word that counts."""
PHRASE_WEIGHT = 1.5
"""Added for each two words that follow each other both in the task and in a skill's name or keywords."""
WORDS_WEIGHT = 2.0
"""Of the root of what the words of a task add up to: the tenth match says less than the second."""
VECTOR_WEIGHT = 30.0
VECTOR_FLOOR = 0.2
"""A similarity of vectors below this says nothing."""
NO_SKILL = ""
"""The name under which vectors say how near a task is to those that need no skill."""
LEAST_SKILLS = 60
"""Words are at least as rare as among so many skills, so that few skills do not make all words common."""
SCALE = 1_000
_LONG = 14
"""A task of more words than this counts each of them less."""


class RankedSkill(Struct, frozen=True):
    """A skill that matches a task."""

    name: str
    score: int
    """In thousandths; the higher, the better it matches."""
    words: tuple[str, ...]
    """Words of the task that it matches, the weightiest first."""


class SkillIndex(Struct, frozen=True, eq=False):
    """The words of skills, weighted, for :func:`rank_skills`."""

    names: tuple[str, ...]
    weights: Mapping[str, Mapping[int, float]]
    """By stem: the places of skills that have it, each with its weight there."""
    phrases: Mapping[tuple[str, str], frozenset[int]]
    """By two stems in a row: the places of skills whose name or keywords have them."""
    gains: dict[str, Mapping[int, float]] = field(default_factory=dict)
    """By stem of a task: what it adds to skills, by their places. Filled as tasks are ranked."""


def build_index(skills: Iterable[Skill]) -> SkillIndex:
    """Index skills by their words, in the order of their names."""
    ordered = sorted(skills, key=lambda skill: skill.name)
    return _build_index(
        tuple((each.name, each.description, each.keywords, each.examples) for each in ordered)
    )


@lru_cache(maxsize=8)
def _build_index(
    skills: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...],
) -> SkillIndex:
    """Index what skills say of themselves; each task of a chain has the same ones."""
    weights: dict[str, dict[int, float]] = {}
    phrases: dict[tuple[str, str], set[int]] = {}
    for place, (name, description, keywords, examples) in enumerate(skills):
        fields = (
            (EXAMPLE_WEIGHT, examples),
            (DESCRIPTION_WEIGHT, (description,)),
            (KEYWORD_WEIGHT, keywords),
            (NAME_WEIGHT, (name,)),
        )
        for weight, texts in fields:
            for text in texts:
                stems = stem_words(text)
                of_part = PART_WEIGHTS.get(weight, weight) if len(stems) > 1 else weight
                for word in stems:
                    held = weights.setdefault(word, {})
                    held[place] = max(held.get(place, 0.0), of_part)
                if weight > DESCRIPTION_WEIGHT:
                    for pair in pairwise(stems):
                        phrases.setdefault(pair, set()).add(place)
    return SkillIndex(
        tuple(name for name, *_ in skills),
        weights,
        {pair: frozenset(places) for pair, places in phrases.items()},
    )


def rank_skills(
    index: SkillIndex, words: str, vectors: Mapping[str, float] | None = None
) -> tuple[RankedSkill, ...]:
    """Return the skills that match ``words``, the best first; equal ones by name.

    ``vectors`` may say how similar each skill is to the words, by name, from 0 to 1.
    What they say of :data:`NO_SKILL` is not ranked.
    """
    stems = stem_words(words)
    scores = _score_words(index, stems)
    for place, name in enumerate(index.names if vectors else ()):
        likeness = (vectors or {}).get(name, 0.0) - VECTOR_FLOOR
        if likeness > 0:
            scores[place] = scores.get(place, 0.0) + VECTOR_WEIGHT * likeness
    matched: dict[int, list[tuple[float, str]]] = {}
    for word in dict.fromkeys(stems):
        for place, gain in _find_gains(index, word).items():
            matched.setdefault(place, []).append((gain, word))
    shown = _first_words(words) if matched else {}
    ranked = [
        RankedSkill(index.names[place], rounded, _name_words(matched.get(place, ()), shown))
        for place, score in scores.items()
        if (rounded := round(score * SCALE)) > 0
    ]
    return tuple(sorted(ranked, key=lambda each: (-each.score, each.name)))


def find_best_skill(index: SkillIndex, words: str, least: int) -> str:
    """Return the name of the skill whose words match ``words`` best; empty below a score of ``least``."""
    scores = _score_words(index, stem_words(words))
    best = min(
        ((-round(score * SCALE), index.names[place]) for place, score in scores.items()),
        default=(0, ""),
    )
    return best[1] if -best[0] >= max(least, 1) else ""


def _score_words(index: SkillIndex, stems: Sequence[str]) -> dict[int, float]:
    """Return what the words of a task add up to, by the places of skills."""
    scores: dict[int, float] = {}
    wanted = dict.fromkeys(stems)
    damping = min(1.0, _LONG / len(wanted)) ** 0.5 if wanted else 1.0
    for word in wanted:
        for place, gain in _find_gains(index, word).items():
            scores[place] = scores.get(place, 0.0) + gain * damping
    for pair in dict.fromkeys(pairwise(stems)):
        for place in index.phrases.get(pair, ()):
            scores[place] = scores.get(place, 0.0) + PHRASE_WEIGHT
    return {place: WORDS_WEIGHT * max(score, 0.0) ** 0.5 for place, score in scores.items()}


def _find_gains(index: SkillIndex, word: str) -> Mapping[int, float]:
    """Return what a word of a task adds to skills, by their places."""
    if word in index.gains:
        return index.gains[word]
    related = related_stems().get(word, ()) if word not in faint_stems() else ()
    if word not in index.weights and not related:
        return {}
    gains: dict[int, float] = {}
    for place, weight in index.weights.get(word, {}).items():
        gains[place] = weight * _rarity(index, word)
    for other in related:
        for place, weight in index.weights.get(other, {}).items():
            gain = RELATED_WEIGHT * weight * _rarity(index, other)
            gains[place] = max(gains.get(place, 0.0), gain)
    index.gains[word] = gains
    return gains


def _rarity(index: SkillIndex, word: str) -> float:
    holders = len(index.weights[word])
    total = max(len(index.names), LEAST_SKILLS)
    rarity = log(1 + (total - holders + 0.5) / (holders + 0.5))
    return rarity * FAINT_WEIGHT if word in faint_stems() else rarity


def _first_words(text: str) -> Mapping[str, str]:
    """Return, by stem, the word as the text has it first."""
    words: dict[str, str] = {}
    for word in re.findall(r"\w+", text.lower()):
        words.setdefault(stem(word), word)
    return words


def _name_words(matched: Sequence[tuple[float, str]], shown: Mapping[str, str]) -> tuple[str, ...]:
    best = sorted(matched, key=lambda entry: (-entry[0], entry[1]))[:3]
    return tuple(shown.get(word, word) for _, word in best)

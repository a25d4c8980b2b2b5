"""Rank skills by the words of a task: a full-text index (FTS5) of their names, keywords and descriptions.

Each word of the task adds its BM25 rank. Scores of vectors may be handed in, and are added. The same skills
and words give the same ranking in every process. See ``docs/reference/skills.md``, ranking.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from msgspec import Struct

from cockpit.core.skills.skill import Skill
from cockpit.orient.skills.stem_words import faint_stems, split_words
from cockpit.store.db.word_stems import TOKENIZER, stem_each

FAINT_WEIGHT = 0.3
"""Share of a word that counts which nearly every task may have."""
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
_SELECT = "SELECT rowid, bm25(skills, 2.2, 1.6, 1.0, 0.5) FROM skills WHERE skills MATCH ?"
"""Names and keywords count more than descriptions, and the words of example requests less."""


class RankedSkill(Struct, frozen=True):
    """A skill that matches a task."""

    name: str
    score: int
    """In thousandths; the higher, the better it matches."""
    words: tuple[str, ...]
    """Words of the task that it matches, the weightiest first."""


class SkillIndex(Struct, frozen=True, eq=False):
    """The words of skills, for :func:`rank_skills`."""

    names: tuple[str, ...]
    connection: sqlite3.Connection


def build_index(skills: Iterable[Skill]) -> SkillIndex:
    """Index skills by their words, in the order of their names."""
    ordered = sorted(skills, key=lambda skill: skill.name)
    rows = [
        (each.name, " ; ".join(each.keywords), each.description, " ; ".join(each.examples))
        for each in ordered
    ]
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute(
        "CREATE VIRTUAL TABLE skills USING fts5(name, keywords, description, examples,"
        f" tokenize='{TOKENIZER}')"
    )
    if 0 < len(rows) < LEAST_SKILLS:  # rows of a word that no task is searched for
        mean = sum(len(" ".join(row).split()) for row in rows) // len(rows)
        rows += [("", "", "the " * mean, "")] * (LEAST_SKILLS - len(rows))
    connection.executemany("INSERT INTO skills VALUES (?,?,?,?)", rows)
    return SkillIndex(tuple(each.name for each in ordered), connection)


def rank_skills(
    index: SkillIndex, words: str, vectors: Mapping[str, float] | None = None
) -> tuple[RankedSkill, ...]:
    """Return the skills that match ``words``, the best first; equal ones by name.

    ``vectors`` are similarities by name, from 0 to 1, as the librarian's vectors say.
    """
    matched: dict[str, list[tuple[float, str]]] = {}
    wanted = list(dict.fromkeys(split_words(words)))
    for word, stem in zip(wanted, stem_each(wanted), strict=True):
        weight = FAINT_WEIGHT if stem in faint_stems() else 1.0
        for row, rank in index.connection.execute(_SELECT, (f'"{word}"',)):
            matched.setdefault(index.names[row - 1], []).append((-rank * weight, word))
    damping = min(1.0, _LONG / max(len(wanted), 1)) ** 0.5
    ranked = []
    for name in index.names:
        gains = sorted(matched.get(name, ()), key=lambda gain: (-gain[0], gain[1]))
        score = WORDS_WEIGHT * (damping * sum(gain for gain, _ in gains)) ** 0.5
        score += VECTOR_WEIGHT * max((vectors or {}).get(name, 0.0) - VECTOR_FLOOR, 0.0)
        if (rounded := round(score * SCALE)) > 0:
            ranked.append(RankedSkill(name, rounded, tuple(word for _, word in gains[:3])))
    return tuple(sorted(ranked, key=lambda each: (-each.score, each.name)))


def find_best_skill(index: SkillIndex, words: str, least: int) -> str:
    """Return the name of the skill whose words match ``words`` best; empty below a score of ``least``."""
    best = next(iter(rank_skills(index, words)), None)
    return best.name if best is not None and best.score >= least else ""

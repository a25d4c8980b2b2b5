"""The words of a question that a search uses: stemmed as the index stems them, weighed by their rarity.

See ``docs/reference/knowledge.md``, search.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from math import log

from msgspec import Struct

from cockpit.observe.knowledge.index_store import KnowledgeIndex
from cockpit.store.db.word_stems import STOP_WORDS, WORD, stem_each

MOST_TERMS = 96
"""Terms of one search: of a longer question those that matter most."""
MOST_QUESTION_CHARS = 20_000
"""Characters of a question that are read."""
_LONGEST_WORD = 64


class Term(Struct, frozen=True):
    """One word of a question."""

    stem: str
    word: str
    """As the question writes it, in lower case."""
    weight: float
    """How much it tells: its rarity in the index. 0 where no chunk has it."""
    often: int
    """How often the question has it."""

    @property
    def importance(self) -> float:
        """The weight, greater for what the question repeats."""
        return (1 + log(self.often)) * self.weight


def split_words(text: str) -> list[str]:
    """Return the words of a text as the index has them, unstemmed and in lower case."""
    return WORD.findall(text.lower())


def read_terms(index: KnowledgeIndex, question: str) -> list[Term]:
    """Return the terms of a question in its order, without those that say nothing.

    At most :data:`MOST_TERMS`, those of the greatest weight. A term that no chunk has weighs as much as the
    rarest: the question asks for it.
    """
    words = [
        word
        for word in split_words(question[:MOST_QUESTION_CHARS])
        if len(word) > 1 and word not in STOP_WORDS and len(word) <= _LONGEST_WORD
    ]
    unique = list(dict.fromkeys(words))
    often = Counter(words)
    by_stem: dict[str, list[str]] = {}
    for word, stem in zip(unique, stem_each(unique), strict=True):
        by_stem.setdefault(stem, []).append(word)
    chunks, counts = _count_chunks(index, list(by_stem))
    terms = [
        Term(stem, names[0], log(1 + (chunks + 1) / (counts.get(stem, 0) + 0.5)), count)
        for stem, names in by_stem.items()
        for count in [sum(often[name] for name in names)]
    ]
    if len(terms) <= MOST_TERMS:
        return terms
    # Whole numbers: ties must not depend on how a machine rounds.
    best = sorted(
        (at for at, term in enumerate(terms) if counts.get(term.stem)),
        key=lambda at: (-round(1e6 * terms[at].importance), at),
    )
    return [terms[at] for at in sorted(best[:MOST_TERMS])]


def _count_chunks(index: KnowledgeIndex, stems: Sequence[str]) -> tuple[int, dict[str, int]]:
    """Return how many chunks there are, and how many of them have each stem."""
    with index.lock:
        (chunks,) = index.connection.execute("SELECT count(*) FROM chunks").fetchone()
        # Looked up one by one: joined with a list of terms, the whole vocabulary would be read.
        rows = index.connection.execute(
            "SELECT value, (SELECT doc FROM terms WHERE term=value) FROM json_each(?)",
            (json.dumps(stems),),
        ).fetchall()
    return int(chunks), {stem: count or 0 for stem, count in rows}

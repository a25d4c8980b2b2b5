"""Search the knowledge index: keywords and vectors, joined by their ranks, each passage with a score.

Keyword search (FTS5, BM25) and vector search each rank chunks; reciprocal rank fusion joins the ranks. How
far the best chunks cover the question, and where a chunk ranks behind them, is its score. Equal inputs give
equal results: ties go by kind, name and line. See ``docs/reference/knowledge.md``, search.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from cockpit.core.test_files import is_test
from cockpit.observe.knowledge.index_store import IndexUnusable, KnowledgeIndex, StoredChunk
from cockpit.observe.knowledge.passage import FILE_KINDS, KINDS, Passage
from cockpit.observe.knowledge.query_terms import Term, read_terms, split_words
from cockpit.store.db.word_stems import stem_each

VectorSearch = Callable[
    [KnowledgeIndex, str, Sequence[Term], Sequence[str], int], "dict[int, float]"
]
"""Similarities (cosines) of the chunks nearest to a question, by chunk id."""

CANDIDATES = 60
"""Chunks that each of the two searches ranks."""
SCORED = 30
"""Chunks of the joined ranks that are scored."""
COMPARED = 2_000
"""Chunks that :func:`compare_lines` looks at, the nearest."""
PER_DOCUMENT = 2
"""Passages of one document."""
TITLE_WEIGHT = 2.0
"""How much more a word counts in the headings than in the text."""
REF_WEIGHT = 0.5
"""How much a word counts in the path."""
KEYWORD_RANKS, VECTOR_RANKS = 2.0, 1.0
"""The weights of the two ranks."""
RANK_SMOOTHING = 20
JUDGED = 3
"""Chunks, the first by rank, that say how far the question is answered."""
PAGE_SHARE = 0.4
"""How much of a chunk's cover is that of its whole document: a page on the subject has all its words."""
BOTH_SHARE = 0.62
"""What the sum of cover and cosine counts: each alone says less."""
OTHERS_SHARE = 0.9
"""The score of docstrings, notes and handoffs beside that of documentation."""


def search_passages(
    index: KnowledgeIndex,
    query: str,
    *,
    kinds: Sequence[str] | None = None,
    limit: int = 5,
    threshold: float = 0.0,
    nearest: VectorSearch | None = None,
) -> tuple[Passage, ...]:
    """Return up to ``limit`` passages that answer ``query``, the best first.

    ``kinds`` limits them to some kinds of documents, ``threshold`` to those that score at least as much.
    ``nearest`` searches by vectors; without it keywords alone count. Blocks. Raises
    :class:`~cockpit.observe.knowledge.index_store.IndexUnusable`.
    """
    wanted = tuple(KINDS if kinds is None else (kind for kind in KINDS if kind in kinds))
    if limit <= 0 or not wanted:
        return ()
    try:
        terms = read_terms(index, query)
        by_words = _rank_by_words(index, terms, wanted)
    except sqlite3.Error as error:
        raise IndexUnusable(f"The knowledge index cannot be searched: {error}.") from error
    cosines = nearest(index, query, terms, wanted, CANDIDATES) if nearest is not None else {}
    by_vectors = sorted(cosines, key=lambda chunk: (-round(cosines[chunk] * 1e6), chunk))
    fused = _join_ranks(by_words, by_vectors)
    stored = index.load_chunks(sorted(fused, key=lambda chunk: (-fused[chunk], chunk))[:SCORED])
    scores = _score(stored, fused, _find_evidence(stored, terms, cosines), threshold)
    ranked = sorted(
        stored.values(),
        key=lambda chunk: (-scores[chunk.chunk_id], _is_of_tests(chunk), *_place_of(chunk)),
    )
    good = [chunk for chunk in ranked if scores[chunk.chunk_id] >= threshold]
    return tuple(_passage(chunk, scores[chunk.chunk_id]) for chunk in _spread(good, limit))


def compare_lines(
    index: KnowledgeIndex, nearest: VectorSearch, words: str, kind: str
) -> dict[str, dict[int, float]]:
    """Return the cosines with ``words`` of the chunks of a kind, by ``ref`` and first line.

    Chunks without vectors are left out.
    """
    cosines = nearest(index, words, read_terms(index, words), (kind,), COMPARED)
    near: dict[str, dict[int, float]] = {}
    for chunk_id, chunk in index.load_chunks(cosines).items():
        near.setdefault(chunk.ref, {})[chunk.start] = round(cosines[chunk_id], 4)
    return near


def _rank_by_words(index: KnowledgeIndex, terms: Sequence[Term], kinds: Sequence[str]) -> list[int]:
    if not terms:
        return []
    match = " OR ".join(f'"{term.word}"' for term in terms)
    with index.lock:
        # Sorted without the join, which takes most of the time: a search of some kinds rarely needs more.
        for most in (4 * CANDIDATES, -1):
            rows = index.connection.execute(
                "SELECT best.rowid, best.score, kind, ref, first_line FROM (SELECT rowid,"
                " bm25(words, ?, 1.0, ?) AS score FROM words WHERE words MATCH ?"
                " ORDER BY score, rowid LIMIT ?) AS best"
                " JOIN chunks ON chunk_id=best.rowid JOIN documents USING(document_id)",
                (TITLE_WEIGHT, REF_WEIGHT, match, most),
            ).fetchall()
            fitting = [row for row in rows if row[2] in kinds]
            if len(fitting) >= CANDIDATES or len(rows) < most:
                break
    # By place, not by number: numbers depend on the order in which files were indexed.
    fitting.sort(key=lambda row: (round(row[1], 6), row[2:]))
    return [row[0] for row in fitting[:CANDIDATES]]


def _join_ranks(by_words: Sequence[int], by_vectors: Sequence[int]) -> dict[int, int]:
    """Reciprocal rank fusion, in billionths."""
    fused: defaultdict[int, int] = defaultdict(int)
    for weight, ranked in ((KEYWORD_RANKS, by_words), (VECTOR_RANKS, by_vectors)):
        for rank, chunk in enumerate(ranked, start=1):
            fused[chunk] += round(1e9 * weight / (RANK_SMOOTHING + rank))
    return fused


def _find_evidence(
    stored: Mapping[int, StoredChunk], terms: Sequence[Term], cosines: Mapping[int, float]
) -> dict[int, float]:
    """Return how far each chunk answers the question: what it covers of it, and its vector's cosine."""
    weights = [term.weight for term in terms]
    total = sum(weights)
    words = {
        chunk_id: {at for at, term in enumerate(terms) if term.stem in present}
        for chunk_id, chunk in stored.items()
        for present in [_stem_chunk(f"{chunk.title}\n{chunk.text}\n{chunk.ref}")]
    }
    of_page: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for chunk_id, chunk in stored.items():
        of_page[chunk.kind, chunk.ref] |= words[chunk_id]

    def share(covered: Iterable[int]) -> float:
        # In the order of the question: a sum of floats depends on its order.
        return sum(weights[at] for at in sorted(covered)) / total if total else 0.0

    evidence = {}
    for chunk_id, chunk in stored.items():
        cover = (1 - PAGE_SHARE) * share(words[chunk_id])
        cover += PAGE_SHARE * share(of_page[chunk.kind, chunk.ref])
        cosine = cosines.get(chunk_id, 0.0)
        evidence[chunk_id] = min(1.0, max(cover, cosine, BOTH_SHARE * (cover + cosine)))
    return evidence


def _score(
    stored: Mapping[int, StoredChunk],
    fused: Mapping[int, int],
    evidence: Mapping[int, float],
    threshold: float,
) -> dict[int, float]:
    """Return the score of each chunk: the evidence of the first of its sort, the less the further behind.

    What is in tests ranks behind all else that reaches the threshold.
    """
    sorts: dict[str, list[StoredChunk]] = {"docs": [], "others": [], "tests": []}
    for chunk in sorted(
        stored.values(), key=lambda each: (-fused[each.chunk_id], *_place_of(each))
    ):
        name = "docs" if chunk.kind == "docs" else "others"
        sorts["tests" if _is_of_tests(chunk) else name].append(chunk)
    scores: dict[int, float] = {}
    for name, chunks in sorts.items():
        most = 1.0 if name == "docs" else OTHERS_SHARE
        answered = most * max((evidence[each.chunk_id] for each in chunks[:JUDGED]), default=0.0)
        if name == "tests":
            good = [score for score in scores.values() if score >= threshold]
            answered = min([answered, *good])
        for chunk in chunks:
            behind = fused[chunk.chunk_id] / fused[chunks[0].chunk_id]
            scores[chunk.chunk_id] = round(answered * behind, 4)
    return scores


def _is_of_tests(chunk: StoredChunk) -> bool:
    return chunk.kind in FILE_KINDS and is_test(chunk.ref)


@lru_cache(maxsize=256)
def _stem_chunk(text: str) -> frozenset[str]:
    """Return the stems of a chunk; the searches of a chain's tasks find the same ones."""
    return frozenset(stem_each(sorted(set(split_words(text)))))


def _spread(ranked: Iterable[StoredChunk], limit: int) -> list[StoredChunk]:
    """Return the first ``limit`` chunks, of one document at most two, and no text twice."""
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    texts: set[str] = set()
    spread: list[StoredChunk] = []
    for chunk in ranked:
        document = (chunk.kind, chunk.ref)
        if counts[document] < PER_DOCUMENT and chunk.digest not in texts and len(spread) < limit:
            counts[document] += 1
            texts.add(chunk.digest)
            spread.append(chunk)
    return spread


def _place_of(chunk: StoredChunk) -> tuple[str, str, int]:
    return chunk.kind, chunk.ref, chunk.start


def _passage(chunk: StoredChunk, score: float) -> Passage:
    return Passage(
        chunk.kind, chunk.ref, chunk.start, chunk.end, chunk.title, chunk.text, chunk.digest, score
    )

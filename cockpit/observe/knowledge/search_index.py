"""Search the knowledge index: keywords and vectors, joined by their ranks, each passage with a score.

Keyword search (FTS5, BM25) and vector search each rank chunks; reciprocal rank fusion joins the ranks. Equal
inputs give equal results: ties go by kind, name and line. See ``docs/reference/knowledge.md``, search.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from cockpit.observe.knowledge.index_store import IndexUnusable, KnowledgeIndex, StoredChunk
from cockpit.observe.knowledge.passage import KINDS, Passage
from cockpit.observe.knowledge.query_terms import Term, read_terms, split_words, stem_words

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
RANK_SMOOTHING = 60


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
    scores = _score(stored, terms, cosines)
    ranked = sorted(stored.values(), key=lambda chunk: (-fused[chunk.chunk_id], *_place_of(chunk)))
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


def _score(
    stored: Mapping[int, StoredChunk], terms: Sequence[Term], cosines: Mapping[int, float]
) -> dict[int, float]:
    """Return the score of each chunk from the share of the question that it covers and its vector."""
    chunks = list(stored.values())
    total = sum(term.weight for term in terms)
    scores = {}
    for chunk in chunks:
        present = _stem_chunk(f"{chunk.title}\n{chunk.text}\n{chunk.ref}")
        covered = sum(term.weight for term in terms if term.stem in present)
        share = covered / total if total else 0.0
        scores[chunk.chunk_id] = calibrate(share, cosines.get(chunk.chunk_id))
    return scores


@lru_cache(maxsize=256)
def _stem_chunk(text: str) -> frozenset[str]:
    """Return the stems of a chunk; the searches of a chain's tasks find the same ones."""
    return frozenset(stem_words(sorted(set(split_words(text)))))


def calibrate(share: float, cosine: float | None) -> float:
    """Return a chunk's score from the share of the question that it covers, and its vector's cosine."""
    if cosine is None:
        return round(share, 4)
    return round(max(share, cosine), 4)


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

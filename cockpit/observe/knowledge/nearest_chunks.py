"""Vector search: the chunks whose vectors are nearest to a question's.

All vectors are kept in memory, read again when the index has changed. See ``docs/reference/knowledge.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cockpit.observe.knowledge.embed_text import DIMENSIONS, Embedder
from cockpit.observe.knowledge.index_store import KnowledgeIndex
from cockpit.observe.knowledge.query_terms import Term

if TYPE_CHECKING:
    import numpy

MOST_PIECES = 96
"""Word pieces of a question that are embedded as they stand."""
LONG_QUESTION = 400
"""A question of more characters is embedded by its weightiest words alone."""
MOST_WORDS = 32
_CACHE = "vectors"


class _Vectors(Struct, frozen=True):
    revision: tuple[int, int]
    chunk_ids: Sequence[int]
    kinds: Sequence[str]
    matrix: Any
    """One row a chunk."""


class NearestChunks(Struct, frozen=True):
    """Searches by the vectors of an embedding model."""

    embedder: Embedder

    def __call__(
        self,
        index: KnowledgeIndex,
        question: str,
        terms: Sequence[Term],
        kinds: Sequence[str],
        most: int,
    ) -> dict[int, float]:
        """Return the cosines of the ``most`` nearest chunks of these kinds, by chunk id."""
        import numpy

        vectors = _load_vectors(index)
        if not vectors.chunk_ids:
            return {}
        target = self.embedder.embed(shorten_question(question, terms), MOST_PIECES)
        cosines: numpy.ndarray[Any, Any] = vectors.matrix @ target
        wanted = set(kinds)
        # Rounded, and by place in the index: equal vectors must not come in an order of their own.
        order = numpy.argsort(-numpy.round(cosines, 6), kind="stable")
        nearest: dict[int, float] = {}
        for at in order:
            if vectors.kinds[at] in wanted:
                nearest[vectors.chunk_ids[at]] = float(cosines[at])
                if len(nearest) >= most:
                    break
        return nearest


def shorten_question(question: str, terms: Sequence[Term]) -> str:
    """Return a short question as it stands, and the weightiest words of a long one in their order.

    A model of this size averages over all that it reads: of a page of text the subject would be lost.
    """
    if len(question) <= LONG_QUESTION:
        return question
    best = sorted(range(len(terms)), key=lambda at: (-round(1e6 * terms[at].importance), at))
    return " ".join(terms[at].word for at in sorted(best[:MOST_WORDS]))


def _load_vectors(index: KnowledgeIndex) -> _Vectors:
    import numpy

    with index.lock:
        revision = index.revision()
        cached = index.cached.get(_CACHE)
        if isinstance(cached, _Vectors) and cached.revision == revision:
            return cached
        rows = [row for row in index.load_vectors() if len(row[2]) == 2 * DIMENSIONS]
        matrix = numpy.frombuffer(b"".join(row[2] for row in rows), dtype="<f2")
        vectors = _Vectors(
            revision,
            [row[0] for row in rows],
            [row[1] for row in rows],
            matrix.reshape(-1, DIMENSIONS).astype(numpy.float32),
        )
        index.cached[_CACHE] = vectors
        return vectors

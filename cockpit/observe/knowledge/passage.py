"""A passage of the knowledge index, the kinds of documents that it can come from, and who finds it.

See ``docs/reference/knowledge.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

KINDS = ("docs", "docstring", "note", "handoff")
"""The kinds of documents: files of prose, doc comments of code, and what the store says."""
FILE_KINDS = ("docs", "docstring")
"""Kinds whose ``ref`` is a path within the project."""
ROUTE = "route"
"""Lines that vectors compare with a task, each a chunk: a kind that no search finds."""
LIMIT = 3
"""Passages of one search, where nothing else is asked for."""
THRESHOLD = 0.5
"""The score that a passage of any search needs, where nothing else is asked for."""


class Passage(Struct, frozen=True):
    """Some lines of a document that match a question."""

    kind: str
    """One of :data:`KINDS`."""
    ref: str
    """A path within the project, or a name such as ``note:ID`` or ``handoff:T-4``."""
    start: int
    """The first line, from 1."""
    end: int
    """The last line, included."""
    title: str
    """The headings above it, joined by " › "."""
    text: str
    """Its lines, with secrets masked."""
    digest: str
    """The SHA-256 of the text."""
    score: float
    """How well it answers, from 0 to 1; see ``docs/reference/knowledge.md``, scores."""


class Chunk(Struct, frozen=True):
    """A part of one document as it is indexed: ``start`` and ``end`` are lines from 1, both included."""

    start: int
    end: int
    title: str
    text: str


class KnowledgeSearch(Protocol):
    """Searches the index of a project, brought up to date before."""

    async def find(
        self,
        query: str,
        *,
        kinds: Sequence[str] = KINDS,
        limit: int | None = None,
        threshold: float | None = None,
    ) -> tuple[Passage, ...]:
        """Return passages, the best first; None: as many and as good as the user's settings say.

        Raises ``CockpitError``.
        """
        ...

    @property
    def limit(self) -> int:
        """The user's ``knowledge_limit``."""
        ...

    @property
    def threshold(self) -> float:
        """The user's ``knowledge_threshold``."""
        ...

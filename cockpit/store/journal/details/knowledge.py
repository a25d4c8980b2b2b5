"""Details of searches of the knowledge index outside of a session's waves."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail


class KnowledgeSearched(Detail, frozen=True, kw_only=True):
    """An external agent searched the knowledge index. A search of a wave is a context request."""

    query: str
    """The question, masked."""
    passages: tuple[str, ...]
    """The passages that it was given, as name and lines."""

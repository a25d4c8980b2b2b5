"""The settings of the librarian. See ``docs/reference/knowledge.md``."""

from __future__ import annotations

from msgspec import Struct

from cockpit.observe.knowledge.passage import LIMIT, THRESHOLD

ENABLED = True
"""Whether sessions search by themselves. Only tests of other things set it to False."""

BACKGROUND = True
"""Whether an open project starts the process that follows files and embeds chunks. Tests set it to False."""


class KnowledgeSettings(Struct, frozen=True):
    """When cockpit searches by itself, and what it takes from the results."""

    enable_rag: bool = True
    """Whether sessions search when a task asks for knowledge."""
    limit: int = LIMIT
    """Passages that one search gives."""
    threshold: float = THRESHOLD
    """The score that a passage needs, from 0 to 1."""

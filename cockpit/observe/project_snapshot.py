"""The project that sources read: at one revision, or as it is on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from cockpit.access.confined_paths import Confined
from cockpit.core.errors import CockpitError
from cockpit.observe.sources.stored_records import StoredRecords

if TYPE_CHECKING:
    from cockpit.observe.knowledge.passage import KnowledgeSearch


class SourceFailed(CockpitError):
    """A source could not read an item; the message says why."""

    code = "source_failed"


class ProjectSnapshot(Struct, frozen=True):
    """The project at one revision or on disk.

    ``rev`` is the reviewed revision (a commit id): files, trees, symbols and searches are read from it
    and never from disk. ``repo`` is ``owner/name`` on GitHub. ``gh`` False refuses pull requests and
    issues. ``records`` are those of the session that asks, where it has a store.
    """

    confined: Confined
    rev: str | None = None
    repo: str | None = None
    gh: bool = True
    records: StoredRecords | None = None
    skills: Mapping[str, Path] | None = None
    """The folders of the session's skills, by name."""
    knowledge: KnowledgeSearch | None = None
    """The librarian; None where there is no index to search."""

    @classmethod
    def at(
        cls,
        root: Path,
        *,
        rev: str | None = None,
        repo: str | None = None,
        records: StoredRecords | None = None,
        skills: Mapping[str, Path] | None = None,
        knowledge: KnowledgeSearch | None = None,
    ) -> ProjectSnapshot:
        """Open the project at ``root``. Raises ``PathRefused``."""
        return cls(Confined(root), rev, repo, records=records, skills=skills, knowledge=knowledge)

    @property
    def root(self) -> Path:
        """The project's real root directory."""
        return self.confined.root

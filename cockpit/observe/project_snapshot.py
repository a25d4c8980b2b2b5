"""The ground that sources stand on: one project, at one revision or as it lies on the disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cockpit.access.confined_paths import Confined
from cockpit.core.errors import CockpitError


class SourceFailed(CockpitError):
    """A source could not give what an item names; the message says what and why."""

    code = "source_failed"


@dataclass(frozen=True, slots=True)
class Ground:
    """Where sources read.

    ``rev`` is the reviewed revision (a commit id): files, trees, symbols and searches are read from
    it and never from the disk. ``repo`` is ``owner/name`` on GitHub. ``gh`` False: pull requests and
    issues are refused.
    """

    confined: Confined
    rev: str | None = None
    repo: str | None = None
    gh: bool = True

    @classmethod
    def at(cls, root: Path, *, rev: str | None = None, repo: str | None = None) -> Ground:
        """The ground of the project at ``root``. Raises ``PathRefused``."""
        return cls(Confined(root), rev, repo)

    @property
    def root(self) -> Path:
        """The project's real root directory."""
        return self.confined.root

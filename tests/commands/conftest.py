"""A real repository with a branch that deserves a review."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_world import Project, git, watching
from copied_repository import copy_repository
from sandbox_here import CONFINES

collect_ignore = [] if CONFINES else ["test_cli_tools.py", "test_cli_evolve.py"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository with a branch ``feature`` that changes what ``main`` has."""
    return Project(copy_repository(_make_branches, tmp_path / "project"), tmp_path / "config")


def _make_branches(root: Path) -> None:
    git(root, "init", "--quiet", "--initial-branch", "main")
    (root / "shapes.py").write_text("def area(a, b):\n    return a * b\n", encoding="utf-8")
    (root / "room.py").write_text(
        "from shapes import area\n\n\ndef room():\n    return area(3, 4)\n", encoding="utf-8"
    )
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "Shapes and rooms")
    git(root, "checkout", "--quiet", "-b", "feature")
    (root / "shapes.py").write_text("def area(a, b, c=1):\n    return a * b * c\n", "utf-8")
    git(root, "commit", "--quiet", "--all", "-m", "Areas have a factor")


@pytest.fixture
def watched(project: Project) -> Iterator[Any]:
    """Starts ``cockpit`` and watches its rows; what still runs at the end is ended."""
    yield from watching(project)

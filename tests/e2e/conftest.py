"""A real repository with a branch, and sessions in it watched row by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands.cli_world import Project, make_branches, watching
from copied_repository import copy_repository


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository with a branch ``feature`` that changes what ``main`` has."""
    return Project(copy_repository(make_branches, tmp_path / "project"), tmp_path / "config")


@pytest.fixture
def watched(project: Project) -> Iterator[Any]:
    """Starts ``cockpit`` and watches its rows; what still runs at the end is ended."""
    yield from watching(project)

"""The project of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from copied_repository import copy_repository
from hook_world import Project, git


@pytest.fixture
def bare(tmp_path: Path) -> Project:
    """A repository that cockpit has never seen."""
    return Project(copy_repository(_make_shop, tmp_path / "shop"))


def _make_shop(root: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    (root / "src").mkdir()
    (root / "src" / "auth.py").write_text("def valid(token):\n    return True\n", encoding="utf-8")
    git(root, "add", ".")
    git(root, "commit", "-qm", "begin")


@pytest.fixture
def project(bare: Project) -> Project:
    """A project with one task in progress, T-1, and one to do, T-2."""
    bare.begin("Expired tokens must fail", "Log every refusal")
    return bare

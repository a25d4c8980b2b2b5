"""A repository to open from an editor."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands.cli_world import Project, git
from copied_repository import copy_repository


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(copy_repository(_make, tmp_path / "project"), tmp_path / "config")
    for name in ("HOME", "COCKPIT_CONFIG_DIR"):
        monkeypatch.setenv(name, made.env[name])
    return made


def _make(root: Path) -> None:
    git(root, "init", "--quiet", "--initial-branch", "main")
    (root / "shapes.py").write_text("def area(a, b):\n    return a * b\n", encoding="utf-8")
    (root / "room.py").write_text("from shapes import area\n", encoding="utf-8")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "Shapes and rooms")

"""A repository to open from an editor."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands.cli_world import Project, make_branches
from copied_repository import copy_repository


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(copy_repository(make_branches, tmp_path / "project"), tmp_path / "config")
    for name in ("HOME", "COCKPIT_CONFIG_DIR"):
        monkeypatch.setenv(name, made.env[name])
    return made

"""A folder that is not a checkout is called what it is: a bare repository, or no repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cockpit.access.git_folders import is_bare
from cockpit.commands.setup.doctor_checks import _repository
from cockpit.core.project_paths import locate_project
from cockpit.tasks.git import WorktreeError
from cockpit.tasks.worktree import head_commit


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """An empty bare repository."""
    subprocess.run(["git", "init", "--quiet", "--bare", "bare.git"], cwd=tmp_path, check=True)
    return tmp_path / "bare.git"


async def test_a_bare_repository_is_not_called_no_repository(bare):
    assert is_bare(bare)
    place = locate_project(bare)
    with pytest.raises(
        WorktreeError, match="is a bare repository, which has no checked out files"
    ) as error:
        await head_commit(place)
    assert f"git clone {bare}" in str(error.value)
    check = _repository(place)
    assert "is a bare repository" in check.detail
    assert "git clone" in check.fix

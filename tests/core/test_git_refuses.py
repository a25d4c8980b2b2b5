"""Where git refuses a repository, its reason reaches the user, and no second project begins there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cockpit.access.run_program import run_git
from cockpit.core.project_paths import GitRefuses, list_states, locate_project


def test_a_repository_that_git_does_not_take_is_refused_in_gits_words(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with open(tmp_path / ".git" / "config", "a", encoding="utf-8") as file:
        file.write("[core]\n\trepositoryformatversion = 99\n")
    with pytest.raises(GitRefuses, match="version <= 1, found 99"):
        locate_project(tmp_path)


def test_the_folder_above_the_worktrees_of_a_bare_repository_is_no_project(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / ".bare")], check=True)
    (tmp_path / ".git").write_text("gitdir: ./.bare\n")
    before = list_states()
    with pytest.raises(GitRefuses, match="git worktree list"):
        locate_project(tmp_path)
    assert list_states() == before


async def test_the_cause_of_a_failure_is_in_its_reason(tmp_path: Path) -> None:
    """A missing filter says so first; git's last line only tells that it hung up."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitattributes").write_text("*.bin filter=absent\n")
    (tmp_path / "x.bin").write_text("x")
    settings = ("-c", "filter.absent.process=program-absent", "-c", "filter.absent.required=true")
    done = await run_git(*settings, "add", "x.bin", cwd=tmp_path)
    assert not done.ok
    assert "program-absent" in done.reason

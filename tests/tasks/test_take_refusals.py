"""How a checkout can be when a branch is taken: refused before the approval, with the way out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cockpit.core.project_paths import ProjectPaths, locate_project
from cockpit.tasks.agent_changes.propose_branch import why_not_into
from cockpit.tasks.worktree import branch_prefix, worktree_name


def git(root: Path, *words: str, check: bool = True) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], cwd=root, check=check, capture_output=True)


@pytest.fixture
def place(tmp_path: Path) -> ProjectPaths:
    """``topic`` and ``main`` change the same line."""
    git(tmp_path, "init", "-q", "-b", "main")
    for branch, text in (("main", "1\n"), ("topic", "2\n"), ("main", "3\n")):
        if branch == "topic":
            git(tmp_path, "branch", "topic")
        if text != "1\n":
            git(tmp_path, "switch", "-q", branch)
        (tmp_path / "a.txt").write_text(text)
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", f"Write {text}")
    return locate_project(tmp_path)


def test_nothing_is_merged_into_a_detached_head(place: ProjectPaths) -> None:
    assert why_not_into(place, "refs/heads/main") == ""
    assert "git switch" in why_not_into(place, "f" * 40)


def test_nothing_is_merged_into_a_branch_that_is_being_rebased(place: ProjectPaths) -> None:
    git(place.root, "switch", "-q", "topic")
    git(place.root, "rebase", "main", check=False)
    assert "git rebase --continue" in why_not_into(place, "refs/heads/topic")
    assert why_not_into(place, "refs/heads/main") == ""


async def test_branches_have_another_start_beside_a_branch_named_cockpit(
    place: ProjectPaths,
) -> None:
    assert await branch_prefix(place) == "cockpit/"
    git(place.root, "branch", "cockpit")
    prefix = await branch_prefix(place)
    git(place.root, "branch", f"{prefix}ch-1")
    assert worktree_name(f"{prefix}ch-1") == worktree_name("cockpit/ch-1") == "ch-1"

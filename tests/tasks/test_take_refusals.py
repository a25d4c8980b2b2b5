"""How a checkout can be when a branch is taken: refused before the approval, with the way out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cockpit.core.project_paths import ProjectPaths, locate_project
from cockpit.tasks.agent_changes.propose_branch import why_not_into
from cockpit.tasks.worktree import branch_prefix, find_checkout_of, worktree_name


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


@pytest.mark.parametrize("verb", ["rebase", "merge", "cherry-pick"])
def test_nothing_is_merged_into_a_branch_that_git_is_at_work_on(place: ProjectPaths, verb: str):
    """In the checkout or in a linked worktree, wherever cockpit was started."""
    apart = place.root.parent / f"{place.root.name}-apart"
    git(place.root, "worktree", "add", "-q", str(apart), "topic")
    git(apart, verb, "main", check=False)
    for folder in (place.root, apart):
        trouble = why_not_into(locate_project(folder), "refs/heads/topic")
        assert f"`git {verb} --continue`" in trouble and str(apart) in trouble
    assert why_not_into(place, "refs/heads/main") == ""


async def test_a_submodule_is_found_where_its_files_are(place: ProjectPaths, tmp_path_factory):
    """Of it git lists the folder of its state."""
    above = tmp_path_factory.mktemp("above")
    git(above, "init", "-q", "-b", "main")
    files = ("-c", "protocol.file.allow=always")
    git(above, *files, "submodule", "add", "-q", str(place.root), "lib")
    module = locate_project(above / "lib")
    assert await find_checkout_of(module, "main") == above / "lib"
    git(module.root, "worktree", "add", "-q", str(above / "apart"), "-b", "apart")
    assert await find_checkout_of(locate_project(above / "apart"), "main") == above / "lib"


async def test_branches_have_another_start_beside_a_branch_named_cockpit(
    place: ProjectPaths,
) -> None:
    assert await branch_prefix(place) == "cockpit/"
    git(place.root, "branch", "cockpit")
    prefix = await branch_prefix(place)
    git(place.root, "branch", f"{prefix}ch-1")
    assert worktree_name(f"{prefix}ch-1") == worktree_name("cockpit/ch-1") == "ch-1"

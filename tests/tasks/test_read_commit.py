"""A commit that is read from git's files is the one that git names, and the rest is left to git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cockpit.tasks.git import changed_files, commit_of, is_ancestor
from cockpit.tasks.read_commit import read_commit


def git(root: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    done = subprocess.run(["git", *identity, *words], cwd=root, capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """A checkout and a worktree of it, one commit apart."""
    main, other = tmp_path / "main", tmp_path / "other"
    main.mkdir()
    git(main, "init", "-q", "-b", "main")
    (main / "a.txt").write_text("a\n")
    git(main, "add", "-A")
    git(main, "commit", "-qm", "One")
    git(main, "worktree", "add", "-q", "-b", "cockpit/T-1", str(other))
    (other / "b.txt").write_text("b\n")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "Two")
    return main, other


async def test_what_is_read_is_what_git_says(trees: tuple[Path, Path]) -> None:
    main, other = trees
    for tree in trees:
        for name in ("HEAD", "refs/heads/main", "refs/heads/cockpit/T-1"):
            assert read_commit(tree, name) == git(tree, "rev-parse", name)
    assert await is_ancestor(other, "refs/heads/main", "HEAD")
    assert not await is_ancestor(main, "refs/heads/cockpit/T-1", "HEAD")
    assert await changed_files(other, "refs/heads/main") == ("b.txt",)
    assert await changed_files(main, "refs/heads/main") == ()


async def test_an_answer_follows_the_branch(trees: tuple[Path, Path]) -> None:
    main, other = trees
    assert await changed_files(main, "refs/heads/main", "refs/heads/cockpit/T-1") == ("b.txt",)
    (other / "c.txt").write_text("c\n")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "Three")
    files = await changed_files(main, "refs/heads/main", "refs/heads/cockpit/T-1")
    assert files == ("b.txt", "c.txt")
    git(main, "merge", "-q", "--ff-only", "cockpit/T-1")
    assert await is_ancestor(main, "refs/heads/cockpit/T-1", "HEAD")
    git(main, "reset", "-q", "--hard", "HEAD~2")
    assert not await is_ancestor(main, "refs/heads/cockpit/T-1", "HEAD")


async def test_the_rest_is_left_to_git(trees: tuple[Path, Path]) -> None:
    main, other = trees
    for name in ("main", "HEAD~1", "refs/heads/none", "refs/heads/../HEAD", "refs/tags/x", ""):
        assert read_commit(other, name) is None
    assert read_commit(main / "nowhere", "HEAD") is None
    git(main, "pack-refs", "--all")
    assert read_commit(other, "HEAD") is None
    assert await commit_of(other, "HEAD") == git(other, "rev-parse", "HEAD")
    git(other, "checkout", "-q", "--detach")
    assert read_commit(other, "HEAD") == git(other, "rev-parse", "HEAD")

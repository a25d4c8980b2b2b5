"""What cockpit reads of commits and of what differs between them is what git says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cockpit.access.git_folders import find_commit, locate_git_folders
from cockpit.tasks.git import MOST_PATCH, changed_files, commit_of, compare_commits, is_ancestor

pytestmark = pytest.mark.slow


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
            assert find_commit(tree, name) == git(tree, "rev-parse", name)
    assert await is_ancestor(other, "refs/heads/main", "HEAD")
    assert not await is_ancestor(main, "refs/heads/cockpit/T-1", "HEAD")
    assert await changed_files(other, "refs/heads/main") == ("b.txt",)
    assert await changed_files(main, "refs/heads/main") == ()


async def test_what_is_no_commit_is_none(trees: tuple[Path, Path]) -> None:
    main, other = trees
    for name in ("refs/heads/../HEAD", "refs/heads/cockpit", "refs/tags/x", "refs/heads/none"):
        assert find_commit(other, name) == ""
    assert locate_git_folders(main / "nowhere") is None
    assert await commit_of(main / ".git", "HEAD") is None
    assert await commit_of(main, "refs/heads/none") is None


async def test_one_call_tells_all_that_differs(trees: tuple[Path, Path]) -> None:
    _, other = trees
    names = ["b.txt", "c.txt", "d e.txt", "z.bin", "ü\nnew.txt"]
    (other / "a.txt").rename(other / "c.txt")
    (other / "d e.txt").write_text("d\n" * 9)
    (other / "ü\nnew.txt").write_text("new\n")
    (other / "z.bin").write_bytes(b"\0\0\n\0")
    (other / "b.txt").chmod(0o755)
    git(other, "add", "-A")
    git(other, "commit", "-qm", "Three")
    difference = await compare_commits(other, "refs/heads/main")
    assert list(difference.paths) == names
    assert list(difference.names) == ["a.txt", *names]
    assert difference.patch.decode().strip() == git(
        other, "-c", "core.quotePath=false", "diff", "main", "HEAD"
    )
    git(other, "update-index", "--chmod=-x", "b.txt")
    git(other, "commit", "-qm", "Four")
    assert (await compare_commits(other, "HEAD~1")).paths == ("b.txt",)


async def test_a_change_of_many_megabytes_has_its_names_and_its_beginning(
    trees: tuple[Path, Path],
) -> None:
    _, other = trees
    for name in ("l1.txt", "l2.txt"):
        (other / name).write_text("a long line of a large file\n" * 120_000)
    git(other, "add", "-A")
    git(other, "commit", "-qm", "Large")
    difference = await compare_commits(other, "refs/heads/main")
    assert difference.paths == ("b.txt", "l1.txt", "l2.txt")
    assert len(difference.patch) == MOST_PATCH

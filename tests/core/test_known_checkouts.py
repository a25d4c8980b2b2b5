"""What the tests remember of a checkout is what git says of it now."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import known_checkouts
import pytest

from cockpit.core import project_paths
from cockpit.core.errors import StoreUnwritable
from cockpit.core.project_paths import locate_project


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository whose place was asked for twice."""
    root = tmp_path / "calc"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    assert locate_project(root) == locate_project(root)
    return root


def test_git_is_asked_once(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = locate_project(checkout)
    monkeypatch.setattr(known_checkouts, "_ask", lambda *words: pytest.fail("git was asked again"))
    assert locate_project(checkout) == place
    assert project_paths._git is known_checkouts._ask_once


CHANGES: dict[str, Callable[[Path], object]] = {
    "no repository any more": lambda root: (root / ".git").rename(root / "gone"),
    "no head": lambda root: (root / ".git" / "HEAD").unlink(),
    "a head of nonsense": lambda root: (root / ".git" / "HEAD").write_text("nonsense\n"),
    "another worktree": lambda root: git(root, "config", "core.worktree", str(root.parent)),
    "bare": lambda root: git(root, "config", "core.bare", "true"),
    "moved": lambda root: root.rename(root.with_name("other")) and root.mkdir(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change_the_answer_is_that_of_git(checkout: Path, change: str) -> None:
    CHANGES[change](checkout)
    options = ("--show-toplevel", "--git-common-dir")
    assert known_checkouts._ask_once(checkout, *options) == known_checkouts._ask(checkout, *options)


def test_another_environment_has_another_answer(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    assert not locate_project(checkout).git
    monkeypatch.undo()
    assert locate_project(checkout).git


def test_a_refusal_is_not_remembered(checkout: Path) -> None:
    git(checkout, "config", "core.worktree", str(checkout.parent))
    for _ in range(2):
        with pytest.raises(StoreUnwritable, match=r"core\.worktree"):
            locate_project(checkout)
    git(checkout, "config", "--unset", "core.worktree")
    assert locate_project(checkout).root == checkout

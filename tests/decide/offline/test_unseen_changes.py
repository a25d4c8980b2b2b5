"""A review says which lines it did not see, counts with git's numbers, and does not approve them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import run_cockpit
from state_for_tests import kept_variables


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def review(root: Path) -> str:
    done = run_cockpit.run(
        ("review", "HEAD~1..HEAD", "--model", "offline", "--approve", "all"),
        cwd=root,
        env={**kept_variables(), "HOME": str(root.parent)},
        patience_s=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_line_longer_than_the_message_is_named_and_not_approved(tmp_path: Path) -> None:
    root = tmp_path / "project"
    git(tmp_path, "init", "-q", "project")
    (root / "a.txt").write_text("1\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "First")
    (root / "min.js").write_text("var a=" + "1+" * 60_000 + "1;fetch(a)\n")
    (root / "b.txt").write_text("b\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Change")
    text = review(root)
    assert "**Comment.**" in text
    assert "`min.js` seen in part" in text
    assert "2 files, +2 −0" in text

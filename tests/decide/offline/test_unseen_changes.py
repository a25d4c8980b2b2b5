"""A review says which lines it did not see, counts with git's numbers, and does not approve them."""

from __future__ import annotations

from pathlib import Path

import run_cockpit
from copied_repository import begin_repository, git
from state_for_tests import kept_variables


def test_a_line_longer_than_the_message_is_named_and_not_approved(tmp_path: Path) -> None:
    root = begin_repository(tmp_path / "project", {"a.txt": "1\n"})
    (root / "min.js").write_text("var a=" + "1+" * 60_000 + "1;fetch(a)\n")
    (root / "b.txt").write_text("b\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Change")
    words = ("review", "HEAD~1..HEAD", "--model", "offline", "--approve", "all")
    env = {**kept_variables(), "HOME": str(tmp_path)}
    done = run_cockpit.run(words, cwd=root, env=env, patience_s=60)
    assert done.returncode == 0, done.stderr
    for told in ("**Comment.**", "`min.js` seen in part", "2 files, +2 −0"):
        assert told in done.stdout

"""Work that an earlier chain did and nobody took is named when another one begins without it."""

from __future__ import annotations

from pathlib import Path

from chains.chain_world import WORK, Chains
from tasks.taskrun_world import git


def test_what_the_new_chain_does_not_begin_with_is_said(tmp_path: Path) -> None:
    made = Chains.made(tmp_path, 1)
    words = (*WORK, "--all", "--model", made.project.script(made.scenario(3)))
    assert "Not merged into your branch" not in made.project.run(*words).stderr
    made.project.run("tasks", "add", "Write part2", "--file", "part2.py")
    said = made.project.run(*words).stderr
    assert "Not merged into your branch yet: cockpit/ch-1." in said
    assert "git merge cockpit/ch-1" in said
    git(made.root, "merge", "--quiet", "cockpit/ch-1", "cockpit/ch-2")
    made.project.run("tasks", "add", "Write part3", "--file", "part3.py")
    assert "Not merged into your branch" not in made.project.run(*words).stderr
    assert git(made.root, "show", "cockpit/ch-3:part1.py") == "x = 1"

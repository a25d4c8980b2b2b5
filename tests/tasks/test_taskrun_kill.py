"""A process that dies anywhere leaves a task that the next one takes up, and nothing is done twice."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from examples import examples
from tasks.taskrun_world import PASSES, QUICK, World, edit, finish, git

pytestmark = pytest.mark.slow

DRIVER = Path(__file__).with_name("task_kill_driver.py")
SCENARIO = (
    edit("implementer", "a - b", "a * b")
    + finish("implementer", "add multiplies.", when='called = ["edit_file"]')
    + edit("fixer", "a * b", "a + b")
    + finish("fixer", "Added.", when='called = ["edit_file"]')
    + PASSES
)
SHIM = """#!/bin/sh
# git, and around some of its commands the death of whoever called it
for word in "$@"; do
  case "$word" in
    add|commit|merge|reset)
      for moment in before after; do
        mark="{marks}/$word-$moment"
        if [ ! -e "$mark" ]; then
          : > "$mark"
          [ $moment = after ] && {git} "$@"
          kill -9 $PPID
          exit 1
        fi
      done
      break;;
  esac
done
exec {git} "$@"
"""


def ended_once(world: World, task_id: str) -> None:
    """The task is done, once; nothing is left over and nothing of the person's was touched."""
    assert world.read(task_id).status == "done"
    assert world.steps(task_id) == [
        ("implement", "done"),
        ("test", "failed"),
        ("fix", "done"),
        ("test", "passed"),
        ("spec_review", "PASS"),
        ("quality_review", "PASS"),
        ("merge", "merged"),
        ("done", "PASS"),
    ]
    steps = [row.raw_detail() for row in world.rows("task.run.step")]
    assert sum(step["position"] == 1 and not step["outcome"] for step in steps) == 1
    assert sum(step["step"] == "done" and step["outcome"] != "" for step in steps) == 1
    assert [row.raw_detail()["role"] for row in world.rows("session.created")] == [
        *("implementer", "fixer", "spec_reviewer", "quality_reviewer")
    ]
    merges = git(world.root, "rev-list", "--merges", "cockpit/ch-1").split()
    assert merges == [world.tree(task_id).merged_commit]
    assert world.show("calc.py").endswith("return a + b")
    trees = git(world.root, "worktree", "list", "--porcelain").count("worktree ")
    assert trees == 2  # the person's and the chain's
    standing = {path.name for path in (world.place.state / "worktrees").iterdir()}
    assert standing == {"ch-1", ".lock"}
    assert git(world.root, "status", "--porcelain") == ""


@pytest.mark.search
def test_killed_at_any_commit_and_around_every_change_of_git_it_is_done_once(world: World) -> None:
    """At random commits to the store, then before and after each change that git makes."""
    world.task_context(SCENARIO)
    task_id = world.task()
    shims, marks = world.folder / "bin", world.folder / "marks"
    shims.mkdir()
    marks.mkdir()
    shim = shims / "git"
    shim.write_text(SHIM.format(marks=marks, git=shutil.which("git")), encoding="utf-8")
    shim.chmod(0o755)
    words = [
        sys.executable,
        str(DRIVER),
        str(world.root),
        str(world.folder),
        task_id,
        QUICK.test_command,
    ]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdin is not None and driver.stdout is not None
        path = os.environ["PATH"]
        starts = [[random.randint(2, 20), path] for _ in range(examples(3))]
        codes, told = [], ""
        for start in [*starts, *[[0, f"{shims}:{path}"]] * 12]:
            print(json.dumps(start), file=driver.stdin, flush=True)
            code, told = json.loads(driver.stdout.readline())
            codes.append(code)
            if code == 0:
                break
        driver.stdin.close()
    assert (codes[-1], told) == (0, "done")
    assert set(codes[:-1]) == {-signal.SIGKILL} and len(codes) > examples(3) + 1
    ended_once(world, task_id)

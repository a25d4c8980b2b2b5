"""A process that dies anywhere leaves a task that the next one takes up, and nothing is done twice."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest
from tasks.taskrun_world import PASSES, World, edit, finish, git

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


class Driver:
    """Processes that do the task, each forked from one that has loaded what they need."""

    def __init__(self, process: subprocess.Popen[str], errors: Path) -> None:
        self.process, self.errors = process, errors

    def drive(self, commits: int = 0, *, path: str = "") -> tuple[int, str]:
        """A process that does the task; its exit code and what it printed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        found = f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]
        print(json.dumps([commits, found]), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        said = self.errors.read_text(encoding="utf-8")
        assert "Traceback" not in said, said
        code, told = json.loads(answer)
        return code, told


@contextmanager
def driving(world: World, task_id: str) -> Iterator[Driver]:
    errors = world.folder / "errors"
    words = [sys.executable, str(DRIVER), str(world.root), str(world.folder), task_id]
    with (
        errors.open("w") as said,
        subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        ) as process,
    ):
        limit = Timer(300, process.kill)
        limit.start()
        try:
            yield Driver(process, errors)
        finally:
            limit.cancel()
            process.kill()


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
    assert len(world.rows("task.run.started")) == len(world.rows("task.run.ended")) == 1
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


def test_killed_after_ever_more_commits_it_is_done_once(world: World) -> None:
    world.task_context(SCENARIO)
    task_id = world.task()
    died = 0
    with driving(world, task_id) as driver:
        for commits in range(1, 60):
            code, told = driver.drive(commits * 2)
            if code == 0:
                assert told == "done"
                break
            assert code == -signal.SIGKILL
            died += 1
    assert died > 5
    ended_once(world, task_id)


def test_killed_before_and_after_every_change_that_git_makes_it_is_done_once(world: World) -> None:
    world.task_context(SCENARIO)
    task_id = world.task()
    shims, marks = world.folder / "bin", world.folder / "marks"
    shims.mkdir()
    marks.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True).stdout.strip()
    shim = shims / "git"
    shim.write_text(SHIM.format(marks=marks, git=real), encoding="utf-8")
    shim.chmod(shim.stat().st_mode | stat.S_IXUSR)
    codes = []
    with driving(world, task_id) as driver:
        for _ in range(12):
            code, told = driver.drive(path=str(shims))
            codes.append(code)
            if code == 0:
                assert told == "done"
                break
    assert codes == [-signal.SIGKILL] * 8 + [0]
    assert {mark.name for mark in marks.iterdir()} == {
        f"{word}-{moment}"
        for word in ("add", "commit", "merge", "reset")
        for moment in ("before", "after")
    }
    ended_once(world, task_id)

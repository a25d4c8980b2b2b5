"""A repository with a function, its test and a backlog, and tasks done in it by scripted roles."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from copied_repository import copy_repository
from state_for_tests import put_store

from cockpit.backlog import service
from cockpit.core.project_paths import ProjectPaths, locate_project
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.backlog import handoffs, tasks
from cockpit.store.chains import task_runs, worktrees
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.tasks.run_task import run_task
from cockpit.tasks.task_context import TaskContext, TaskOutcome, WorkSettings

BRANCH = "cockpit/ch-1"
QUICK = WorkSettings(test_command='grep -Eq "[ab] [+] [ab]|sum" calc.py')
"""Red and green as the project's own test, which starts an interpreter in a sandbox."""

SOURCE = "def add(a, b):\n    return a - b\n"
TEST = (
    "import unittest\nfrom calc import add\n\n\n"
    "class Adding(unittest.TestCase):\n"
    "    def test_add(self):\n"
    "        self.assertEqual(add(1, 2), 3)\n"
)


def turn(role: str, name: str, arguments: str, *, when: str = "", said: str = "") -> str:
    """A turn of a scenario: that role calls that tool, when these further conditions hold; ``said``
    stands in what it reads."""
    contains = ", ".join(f'"{text}"' for text in (f"Your role: {role}", said) if text)
    more = f", {when}" if when else ""
    return (
        f"[[turn]]\nwhen = {{ contains = [{contains}]{more} }}\n"
        f'[[turn.call]]\nname = "{name}"\narguments = {{ {arguments} }}\n'
    )


def finish(role: str, summary: str, *, status: str = "done", when: str = "", said: str = "") -> str:
    """A turn in which that role finishes."""
    told = summary.replace("\n", "\\n")
    arguments = f'status = "{status}", summary = "{told}"'
    return turn(role, "finish", arguments, when=when, said=said)


def edit(role: str, old: str, new: str, *, path: str = "calc.py", said: str = "") -> str:
    """A turn in which that role edits a file."""
    return turn(role, "edit_file", f'path = "{path}", old = "{old}", new = "{new}"', said=said)


PASSES = finish("spec reviewer", "VERDICT: PASS\nAll there.") + finish(
    "quality reviewer", "VERDICT: PASS\nSound."
)
NOTES = turn("implementer", "write_file", 'path = "notes.md", content = "What I saw."') + finish(
    "implementer", "Done.", when='called = ["write_file"]'
)
"""An implementer that changes something, but not the code."""
AT_ONCE = (
    edit("implementer", "a - b", "a + b")
    + finish("implementer", "add adds.", when='called = ["edit_file"]')
    + PASSES
)


def git(root: Path, *args: str) -> str:
    """``git ARGS`` as a person would run it."""
    env = os.environ.copy()
    done = subprocess.run(
        ["git", *args], cwd=root, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"git {args}: {done.stderr}"
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    """A repository on ``main`` with ``calc.py`` and its test."""
    return copy_repository(_make_calc, folder / "calc")


def _make_calc(root: Path) -> None:
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "config", "user.name", "T")
    git(root, "config", "user.email", "t@example.invalid")
    (root / "calc.py").write_text(SOURCE, encoding="utf-8")
    (root / "test_calc.py").write_text(TEST, encoding="utf-8")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "Add calc")


@dataclass
class World:
    """The project, its open store and a scenario."""

    folder: Path
    root: Path
    place: ProjectPaths
    store: Store
    work: WorkSettings = field(default_factory=WorkSettings)
    approve: str = "all"

    @classmethod
    def made(cls, folder: Path) -> World:
        root = repository(folder)
        place = locate_project(root)
        place.prepare()
        return cls(folder, root, place, Store.open(put_store(place.database)))

    def task(self, title: str = "Make add add", **fields: Any) -> str:
        given = {"files": ["calc.py"], **fields}
        made = self.store.write_now(lambda tx: service.create_task(tx, title, by="person", **given))
        return made.task_id

    def task_context(self, scenario: str, **changed: Any) -> TaskContext:
        path = self.folder / "scenario.toml"
        path.write_text(scenario, encoding="utf-8")
        fields: dict[str, Any] = {
            "store": self.store,
            "place": self.place,
            "settings": RuntimeSettings(
                user_dir=self.folder / "config", environment=dict(os.environ)
            ),
            "chain_id": "ch-1",
            "ordinal": 1,
            "chain_branch": BRANCH,
            "approve": self.approve,
            "model": f"script:{path}",
            "work": self.work,
        }
        return TaskContext(**{**fields, **changed})

    async def do(self, scenario: str, task_id: str, **changed: Any) -> TaskOutcome:
        return await run_task(self.task_context(scenario, **changed), task_id)

    def steps(self, task_id: str) -> list[tuple[str, str | None]]:
        found = self.store.read_now(lambda seen: task_runs.select_steps(seen, task_id))
        return [(step.step, step.outcome) for step in found]

    def read(self, task_id: str) -> tasks.Task:
        return self.store.read_now(lambda seen: tasks.load(seen, task_id))

    def tree(self, name: str) -> worktrees.Worktree:
        return self.store.read_now(lambda seen: worktrees.load(seen, name))

    def handoff(self, task_id: str) -> handoffs.Handoff:
        return self.store.read_now(lambda seen: handoffs.load(seen, task_id))

    def rows(self, action: str) -> list[Any]:
        found = self.store.read_now(lambda seen: journal.rows(seen, limit=100_000))
        return [row for row in found if row.action == action]

    def show(self, path: str, revision: str = BRANCH) -> str:
        return git(self.root, "show", f"{revision}:{path}")

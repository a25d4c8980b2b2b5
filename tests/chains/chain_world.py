"""A repository with a backlog, and chains begun in it as a person or a script begins them."""

from __future__ import annotations

import atexit
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from commands.cli_world import PATIENCE_S, Project
from state_for_tests import copy_project, state_of
from tasks.taskrun_world import PASSES, SOURCE, finish, git, repository, turn

from cockpit.store.chains import chains, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker
from cockpit.store.db.database import Store
from cockpit.store.journal import journal

WORK = ("work", "--headless", "--approve", "all")


def slowly(scenario: str, pace: float = 0.3) -> str:
    """The scenario with implementers who take their time over their first words."""
    return scenario.replace(
        "[[turn.call]]", f'text = "one two three four"\npace = {pace}\n[[turn.call]]', 1
    )


@cache
def _template(count: int) -> Path:
    """A project with ``count`` tasks, made once and copied."""
    folder = tempfile.TemporaryDirectory(prefix="chains-")
    atexit.register(folder.cleanup)
    return Chains._made_anew(Path(folder.name), count).root


@dataclass
class Chains:
    """The project, and what a chain left in its store."""

    project: Project

    @classmethod
    def made(cls, folder: Path, count: int) -> Chains:
        """A project whose tests pass, with ``count`` tasks that write a file each."""
        root = folder / "calc"
        copy_project(_template(count), root)
        # Each task's tests are run; those of the project's files start an interpreter in a sandbox.
        extra = {"COCKPIT_TEST_COMMAND": "grep -q return calc.py"}
        return cls(Project(root, folder / "config", extra))

    @classmethod
    def _made_anew(cls, folder: Path, count: int) -> Chains:
        root = repository(folder)
        (root / "calc.py").write_text(SOURCE.replace("a - b", "a + b"), encoding="utf-8")
        git(root, "commit", "--quiet", "-am", "Add adds")
        made = cls(Project(root, folder / "config"))
        for at in range(1, count + 1):
            made.project.run("tasks", "add", f"Write part{at}", "--file", f"part{at}.py")
        return made

    @property
    def root(self) -> Path:
        return self.project.root

    def scenario(self, count: int) -> str:
        """Implementers that write their task's file, reviewers that are content."""
        text = ""
        for at in range(1, count + 1):
            said = f"Write part{at}\\\\b"
            wrote = f'path = "part{at}.py", content = "x = {at}\\n"'
            text += turn("implementer", "write_file", wrote, said=said)
            text += finish(
                "implementer", f"part{at} is there.", when='called = ["write_file"]', said=said
            )
        return text + PASSES

    def model(self, text: str) -> tuple[str, str]:
        return ("--model", self.project.script(text))

    def read(self, look: Callable[[Any], Any]) -> Any:
        """Look into the store while others write it."""
        with Store.open(self._database) as store:
            return store.read_now(look)

    @cached_property
    def _database(self) -> Path:
        """Found once: git is asked where the project is."""
        return state_of(self.root) / "cockpit.db"

    def chain(self, chain_id: str = "ch-1") -> Chain:
        found: Chain = self.read(lambda seen: chains.load(seen, chain_id))
        return found

    def sessions(self, chain_id: str = "ch-1") -> list[Worker]:
        found: list[Worker] = self.read(lambda seen: workers.select_for_chain(seen, chain_id))
        return found

    def rows(self, action: str) -> list[dict[str, Any]]:
        found = self.read(lambda seen: journal.rows(seen, limit=100_000))
        return [row.raw_detail() for row in found if row.action == action]

    def runs(self, status: str) -> list[dict[str, Any]]:
        """The changes of runs on other machines to a status."""
        return [row for row in self.rows("remote.run.changed") if row["status"] == status]

    def statuses(self) -> dict[str, str]:
        return {one["id"]: one["status"] for one in self.project.json("tasks", "--json")}

    def told(self, process: subprocess.Popen[str], words: str) -> list[str]:
        """Read what the process tells until a line holds ``words``; returns those lines."""
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if words in line:
                return lines
        raise AssertionError(f"never told {words!r}: {lines} {self.errors(process)}")

    def errors(self, process: subprocess.Popen[str]) -> str:
        assert process.stderr is not None
        return process.stderr.read()

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        """Wait for the process; returns its exit code and the rest that it told."""
        told, _ = process.communicate(timeout=PATIENCE_S)
        return process.returncode, told

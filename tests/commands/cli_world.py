"""``cockpit`` run in a repository as a person or a script runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import run_cockpit
from state_for_tests import kept_variables, state_of

from cockpit.access.principals import PERSON
from cockpit.config.load_settings import load_settings
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.store.db.database import Store
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal

COLD = (sys.executable, "-m", "cockpit")
"""A process that starts from nothing, as do the workers that it starts."""
PATIENCE_S = 90

SCENARIO = """
[[turn]]
text = "I need two files before I judge this."
[[turn.call]]
name = "request_context"
[turn.call.arguments]
purpose = "see the callers"
question = "who calls area?"
scope = ["file:shapes.py", "file:room.py"]
escalation = ""
[[turn]]
when = { called = ["request_context"] }
text = "I write my notes down."
[[turn.call]]
name = "write_file"
arguments = { path = "notes.md", content = "# Notes\\n" }
[[turn]]
when = { called = ["write_file"] }
text = "That is all."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Notes written." }
"""


@dataclass
class Project:
    """A repository and the environment that ``cockpit`` is run in there."""

    root: Path
    config: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        kept = kept_variables()
        home = self.config.parent / "home"
        home.mkdir(exist_ok=True)
        return {
            **kept,
            "HOME": str(home),
            "COCKPIT_CONFIG_DIR": str(self.config),
            **self.extra,
        }

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start ``cockpit``; the caller ends it."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        given = {"stdin": subprocess.DEVNULL, **pipes, **options}
        return subprocess.Popen(
            [*run_cockpit.PROGRAM, *words],
            cwd=self.root,
            env=self.env,
            text=True,
            encoding="utf-8",
            **given,
        )

    def run(
        self, *words: str, expect: int = 0, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run ``cockpit`` to its end, which must be ``expect``."""
        done = run_cockpit.run(
            words, cwd=self.root, env=self.env, stdin=stdin, patience_s=PATIENCE_S
        )
        assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    def json(self, *words: str, expect: int = 0) -> Any:
        """What ``cockpit`` prints, as JSON."""
        return json.loads(self.run(*words, expect=expect).stdout)

    def rows(self, *words: str, expect: int = 0) -> list[dict[str, Any]]:
        """The rows that ``cockpit`` streams while it runs to its end."""
        done = self.run(*words, "--output-format", "stream-json", expect=expect)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def script(self, text: str = SCENARIO) -> str:
        """Write a scenario; returns the model that plays it."""
        path = self.config.parent / "scenario.toml"
        path.write_text(text, encoding="utf-8")
        return f"script:{path}"

    def git(self, *words: str) -> str:
        return git(self.root, *words)


@contextmanager
def approving(project: Project) -> Iterator[list[Proposal]]:
    """While a command runs in this process the user approves, in a thread, what waits; yields what did.

    Where they cannot, the command is interrupted.
    """
    database, shown, is_over = state_of(project.root) / "cockpit.db", [], threading.Event()
    settings = load_settings(None, env={}).runtime

    def approve() -> None:
        while not (is_over.wait(0.02) or database.exists()):
            continue
        with Store.open(database) as store:
            while not is_over.wait(0.02):
                for each in store.read_now(proposals.select_pending):
                    asking = store.read_now(lambda c, each=each: sessions.load(c, each.session_id))
                    if asking.status != "waiting":
                        continue  # it has not said yet that it waits
                    shown.append(each)
                    given = {"shown_digest": each.shown_digest}
                    store.write_now(
                        lambda tx, name=each.proposal_id, given=given: decide_proposal(
                            tx, settings, name, "approved", PERSON, **given
                        )
                    )

    def interrupt(failed: Future[None]) -> None:
        if failed.exception():
            os.kill(os.getpid(), signal.SIGINT)

    with ThreadPoolExecutor(1) as threads:
        user = threads.submit(approve)
        user.add_done_callback(interrupt)
        try:
            yield shown
        finally:
            is_over.set()
            user.result()


class Watched:
    """A running ``cockpit run --output-format stream-json``, read row by row."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.rows: list[dict[str, Any]] = []

    def until(self, action: str) -> dict[str, Any]:
        """Read on to the next row of ``action``."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.rows.append(json.loads(line))
            if self.rows[-1]["action"] == action:
                return self.rows[-1]
        raise AssertionError(f"no {action}: {self.rows[-1:]} {self.errors()}")

    def end(self) -> int:
        """Read to the end; returns the exit code."""
        assert self.process.stdout is not None
        self.rows += [json.loads(line) for line in self.process.stdout]
        return self.process.wait(PATIENCE_S)

    def errors(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()


def git(root: Path, *words: str) -> str:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": "2026-01-05T10:00:00+00:00",
        "GIT_COMMITTER_DATE": "2026-01-05T10:00:00+00:00",
    }
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    done = subprocess.run(
        ["git", *who, *words], cwd=root, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout


def make_branches(root: Path) -> None:
    """Make a repository with a branch ``feature`` that changes what ``main`` has."""
    git(root, "init", "--quiet", "--initial-branch", "main")
    (root / "shapes.py").write_text("def area(a, b):\n    return a * b\n", encoding="utf-8")
    (root / "room.py").write_text(
        "from shapes import area\n\n\ndef room():\n    return area(3, 4)\n", encoding="utf-8"
    )
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "Shapes and rooms")
    git(root, "checkout", "--quiet", "-b", "feature")
    (root / "shapes.py").write_text("def area(a, b, c=1):\n    return a * b * c\n", "utf-8")
    git(root, "commit", "--quiet", "--all", "-m", "Areas have a factor")


def watching(project: Project) -> Iterator[Callable[..., Watched]]:
    """What starts ``cockpit`` and watches its rows; what still runs at the end is ended."""
    started: list[Watched] = []

    def start(*words: str) -> Watched:
        made = Watched(project.start(*words, "--output-format", "stream-json"))
        started.append(made)
        return made

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()

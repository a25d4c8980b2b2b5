"""A chain whose processes are killed at random points, and what must hold in the end all the same.

``make chaos`` plays many seeds; see ``tests/faults/chaos.py``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from commands.cli_world import Project
from tasks.taskrun_world import PASSES, edit, finish, git

from cockpit.core.processes import is_process_alive
from cockpit.core.project_paths import locate_project
from cockpit.store.backlog import tasks
from cockpit.store.chains import chains, task_runs, workers
from cockpit.store.db.database import Store
from cockpit.store.journal import journal, verify_chain

BRANCH = "cockpit/ch-1"
TOKENS = "9000"
"""What a session may spend: about three tasks."""
PATIENCE_S = 300
DONE = {"T-1": 1, "T-2": 2, "T-4": 1}
"""The tasks that come to their end, and how often their tests are run."""
FILES = {
    "one.py": "def one():\n    return 1\n\n\ndef more():\n    return 1 + 1\n",
    "two.py": "def two():\n    return 2\n",
    "three.py": "def three():\n    return 4\n",
}
"""What the chain's branch holds at the end."""

_SOURCES = {
    "one.py": "def one():\n    return 0\n\n\ndef more():\n    return 0\n",
    "two.py": "def two():\n    return 0\n",
    "three.py": "def three():\n    return 4\n",
}
_TASKS = (
    ("One is one", "one.py"),
    ("Two is two, in the end", "two.py"),
    ("Three cannot be three", "three.py"),
    ("One has more", "one.py"),
)


def _at_once(task: str, path: str, old: str, new: str) -> str:
    named = f"implementer of {task}:"
    return edit("implementer", old, new, path=path, said=named) + finish(
        "implementer", f"{task} is there.", when='called = ["edit_file"]', said=named
    )


SCENARIO = (
    _at_once("T-1", "one.py", "one():\\n    return 0", "one():\\n    return 1")
    + _at_once("T-2", "two.py", "return 0", "return 3")
    + edit("fixer", "return 3", "return 2", path="two.py", said="fixer of T-2:")
    + finish("fixer", "Mended.", when='called = ["edit_file"]', said="fixer of T-2:")
    + _at_once("T-3", "three.py", "return 4", "return 3")
    + finish("fixer", "The test says otherwise.", said="fixer of T-3:")
    + _at_once("T-4", "one.py", "more():\\n    return 0", "more():\\n    return 1 + 1")
    + PASSES
)


@dataclass
class Played:
    """What happened in one seed: at which row of the journal who was killed, and how it ended."""

    seed: int
    kills: list[str] = field(default_factory=list)
    starts: int = 0
    told: str = ""


def made(folder: Path) -> Project:
    """A repository with four tasks on its backlog: two are in one file, one cannot be mended."""
    root = folder / "counted"
    root.mkdir(parents=True)
    for name, text in _SOURCES.items():
        (root / name).write_text(text, encoding="utf-8")
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "config", "user.name", "T")
    git(root, "config", "user.email", "t@example.invalid")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "Begin to count")
    (folder / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    settings = {
        "COCKPIT_SESSION_TOKEN_LIMIT": TOKENS,
        "COCKPIT_MAX_TEST_RETRIES": "1",
        "COCKPIT_TEST_COMMAND": """sh -c '! grep -q "return 3" two.py three.py'""",
        "COCKPIT_MAX_CHAINS": "100",
        "COCKPIT_REPORT": "always",
    }
    project = Project(root, folder / "config", settings)
    lines = [
        {"kind": "task", "id": f"T-{number}", "title": title, "files": [path]}
        for number, (title, path) in enumerate(_TASKS, start=1)
    ]
    backlog = folder / "backlog.jsonl"
    backlog.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    project.run("tasks", "import", str(backlog))
    return project


def play(folder: Path, seed: int) -> tuple[Project, Played]:
    """Run the chain of ``seed`` to its end, and kill its processes on the way."""
    chance = random.Random(seed)
    project, played = made(folder), Played(seed)
    model = f"script:{folder / 'scenario.toml'}"
    words = ["work", "--all", "--headless", "--approve", "all", "--model", model]
    left = chance.randint(1, 6)
    with Store.open(locate_project(project.root).database) as store:
        for _ in range(20):
            with _running(project, words, folder / f"out-{played.starts}") as running:
                played.starts += 1
                while left and _kill(store, running, chance, played):
                    left -= 1
                running.wait(PATIENCE_S)
                # Whoever goes on may find a session that outlived its supervisor, or none.
                if chance.random() < 0.5:
                    _others_have_ended(store)
            played.told = (folder / f"out-{played.starts - 1}").read_text(encoding="utf-8")
            begun = store.read_now(chains.select)
            if begun and begun[0].status == "completed":
                return project, played
            if begun:
                words = ["work", "--continue", "--headless"]
    raise AssertionError(f"the chain comes to no end: {played}")


@contextmanager
def _running(project: Project, words: list[str], out: Path) -> Iterator[subprocess.Popen[str]]:
    with out.open("w", encoding="utf-8") as told:
        running = project.start(*words, stdout=told, stderr=subprocess.STDOUT)
        try:
            yield running
        finally:
            if running.poll() is None:
                running.kill()
                running.wait(PATIENCE_S)


def _kill(
    store: Store, running: subprocess.Popen[str], chance: random.Random, played: Played
) -> bool:
    """After some rows more, kill the session that runs, who watches over it, or both at once.

    False when the chain ended before.
    """
    rows = _rows(store) + chance.choice((chance.randint(1, 30), chance.randint(1, 200)))
    who = chance.choice(("session", "session", "supervisor", "both"))
    while _rows(store) < rows:
        if running.poll() is not None:
            return False
        time.sleep(0.02)
    session = _session(store)
    if who != "session":
        running.kill()
    if session is not None and who != "supervisor":
        with _gone_is_well():
            os.kill(session, signal.SIGKILL)
    played.kills.append(f"{who} at row {_rows(store)}")
    if who != "session":
        running.wait(PATIENCE_S)
    return running.poll() is None


@contextmanager
def _gone_is_well() -> Iterator[None]:
    try:
        yield
    except ProcessLookupError:
        return


def _rows(store: Store) -> int:
    return store.read_now(journal.last_seq)


def _session(store: Store) -> int | None:
    """The process of the session that runs; it is one of this chain, so it is ours to kill."""
    found = store.read_now(lambda seen: workers.select_for_chain(seen, "ch-1"))
    running = [one for one in found if one.status == "running" and is_process_alive(one.process)]
    return running[-1].pid if running else None


def _others_have_ended(store: Store) -> None:
    """A session that outlives who watched over it comes to its own end."""
    until = time.monotonic() + PATIENCE_S
    while _session(store) is not None:
        assert time.monotonic() < until, "a session without a supervisor does not end"
        time.sleep(0.02)


def check(project: Project) -> None:
    """Whatever was killed: every task has come to its end, once, and nothing is lost or left over."""
    place = locate_project(project.root)
    with Store.open(place.database) as store:
        known = {task.task_id: task for task in store.read_now(tasks.select)}
        assert {name: task.status for name, task in known.items()} == {
            **dict.fromkeys(DONE, "done"),
            "T-3": "blocked",
        }
        assert "still fail" in known["T-3"].blocker
        rows = store.read_now(lambda found: journal.rows(found, limit=100_000))
        for name in known:
            mine = [row for row in rows if row.raw_detail().get("task_id") == name]
            moves = [row.raw_detail() for row in mine if row.action == "task.run.step"]
            started = [move for move in moves if move["position"] == 1 and not move["outcome"]]
            ended = [m for m in moves if m["step"] in ("done", "blocked") and m["outcome"]]
            assert (len(started), len(ended)) == (1, 1), f"{name} was done more than once"
            steps = store.read_now(lambda found, name=name: task_runs.select_steps(found, name))
            roles = [row.raw_detail()["role"] for row in mine if row.action == "session.created"]
            assert len(roles) == sum(step.session_id is not None for step in steps), name
            if name in DONE:
                assert [step.step for step in steps].count("test") == DONE[name]
        assert store.read_now(verify_chain.verify).ok
        (chain,) = store.read_now(chains.select)
        assert chain.status == "completed"
        assert all(
            one.status != "running"
            for one in store.read_now(lambda found: workers.select_for_chain(found, "ch-1"))
        )
        (leases,) = store.read_now(
            lambda found: found.execute("SELECT count(*) FROM task_leases").fetchone()
        )
        assert leases == 0
    _check_git(project, place.state / "worktrees")
    report = (project.root / ".cockpit" / "reports" / "chain-1-report.md").read_text("utf-8")
    assert all(name in report for name in known)


def _check_git(project: Project, standing: Path) -> None:
    root = project.root
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "symbolic-ref", "--short", "HEAD") == "main"
    assert git(root, "rev-list", "--count", "main") == "1"
    for path, text in FILES.items():
        assert git(root, "show", f"{BRANCH}:{path}") == text.strip(), path
    merged = git(root, "log", "--merges", "--format=%(trailers:key=Cockpit-Task,valueonly)", BRANCH)
    assert sorted(merged.split()) == sorted(DONE)
    assert "return 3" in git(root, "show", "cockpit/T-3:three.py")
    for name in DONE:
        assert git(root, "merge-base", f"cockpit/{name}", BRANCH) == git(
            root, "rev-parse", f"cockpit/{name}"
        )
    branches = set(git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads").split())
    assert branches == {"main", BRANCH, *(f"cockpit/T-{number}" for number in range(1, 5))}
    assert {path.name for path in standing.iterdir()} == {"ch-1", "T-3", ".lock"}
    listed = git(root, "worktree", "list", "--porcelain")
    assert listed.count("worktree ") == 3, listed
    assert "prunable" not in listed
    # A commit that no branch holds is one that git was killed over and that was made again.
    kept = set(git(root, "log", "--all", "--format=%T").split())
    for line in git(root, "fsck", "--unreachable", "--no-reflogs").splitlines():
        if line.startswith("unreachable commit "):
            assert git(root, "log", "-1", "--format=%T", line.split()[-1]) in kept, line

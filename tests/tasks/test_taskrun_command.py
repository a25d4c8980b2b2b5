"""``cockpit work`` and ``cockpit chain worktrees``, run as a person runs them."""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
import time
from pathlib import Path

import pytest
from commands.cli_world import Project
from state_for_tests import state_of
from tasks.taskrun_world import AT_ONCE, SOURCE, finish, git, repository

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(repository(tmp_path), tmp_path / "config")
    made.run("tasks", "add", "Make add add", "--file", "calc.py")
    return made


def scenario(project: Project, text: str) -> str:
    path = project.root.parent / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    return f"script:{path}"


def test_a_task_is_done_and_can_be_taken(project: Project) -> None:
    model = scenario(project, AT_ONCE)
    (project.root / "calc.py").write_text(SOURCE + "\n# mine\n", encoding="utf-8")
    done = project.run("work", "--task", "t-1", "--model", model, "--approve", "all")
    assert "T-1 is done. add adds." in done.stdout
    assert "git merge cockpit/work" in done.stdout
    assert "1 file in your checkout is not committed" in done.stderr
    assert (project.root / "calc.py").read_text(encoding="utf-8").endswith("# mine\n")
    assert git(project.root, "show", "cockpit/work:calc.py").endswith("return a + b")
    again = project.run("work", "--task", "T-1", "--model", model, "--approve", "all", "--json")
    assert json.loads(again.stdout)["status"] == "done"


def test_a_task_is_done_as_its_own_type_says(project: Project) -> None:
    """The file is in the checkout alone: the task's worktree has no copy of it."""
    folder = project.root / ".cockpit" / "task-types"
    folder.mkdir(parents=True)
    (folder / "survey.md").write_text(
        '+++\nname = "survey"\ndod = ["Every adder was counted."]\n+++\n'
    )
    project.run("tasks", "edit", "T-1", "--type", "survey")
    model = scenario(project, AT_ONCE)
    done = project.run("work", "--task", "T-1", "--model", model, "--approve", "all")
    assert "T-1 is done." in done.stdout
    with sqlite3.connect(state_of(project.root) / "cockpit.db") as connection:
        (first,) = connection.execute("SELECT words FROM sessions ORDER BY rowid").fetchone()
    assert "1. Every adder was counted." in first


def test_no_limit_is_ignored_for_a_runner_that_reports_nothing(project: Project) -> None:
    command = json.dumps([sys.executable, "-c", "print('STATUS: done')"])
    project.config.mkdir(exist_ok=True)
    (project.config / "config.toml").write_text(
        f'[limits]\nmax_tokens = 9000\n[runner.plain]\ncommand = {command}\nformat = "text"\n',
        encoding="utf-8",
    )
    started = ("work", "--all", "--headless", "--approve", "all", "--runner", "plain")
    for words, said in (
        (("--max-cost", "3"), "Runner plain reports no cost, so the limit of $3.00"),
        ((), "Runner plain reports no tokens, so the limit of 9,000 tokens"),
    ):
        assert said in project.run(*started, *words, expect=2).stderr


def test_a_blocked_task_says_where_its_work_is(project: Project) -> None:
    model = scenario(project, finish("implementer", "The spec is unclear.", status="blocked"))
    done = project.run("work", "--task", "T-1", "--model", model, "--approve", "all", expect=3)
    assert "The spec is unclear." in done.stdout
    assert "cockpit/T-1" in done.stdout
    listed = json.loads(project.run("chain", "worktrees", "--json").stdout)
    assert [(tree["name"], tree["status"]) for tree in listed] == [
        ("work", "active"),
        ("T-1", "kept"),
    ]
    cleaned = project.run("chain", "worktrees", "--clean")
    assert "removed work" in cleaned.stdout
    assert "kept T-1: its work is merged nowhere" in cleaned.stdout


def test_the_session_of_a_role_goes_on_in_its_tree_alone(project: Project) -> None:
    model = scenario(project, AT_ONCE)
    words = ("work", "--task", "T-1", "--model", model, "--approve", "ask")
    project.extra = {"COCKPIT_DEADLINE_S": "1"}
    late = project.run(*words, expect=3)
    assert "Resume the task with `cockpit tasks move T-1 unblocked`" in late.stdout
    [session] = project.json("sessions", "--json")
    given = ("--continue", session["session_id"], "--model", model, "--approve", "all")
    refused = project.run("run", *given, expect=2)
    assert "is the implementer of T-1" in refused.stderr
    assert (project.root / "calc.py").read_text(encoding="utf-8") == SOURCE


def test_no_task_is_begun_with_a_role_that_cannot_be_read(project: Project) -> None:
    roles = project.root / ".cockpit" / "roles"
    roles.mkdir(parents=True, exist_ok=True)
    (roles / "mine.md").write_text('+++\nname = "fixer"\nmax_waves = 9999\n+++\n', encoding="utf-8")
    for words in (("--task", "T-1"), ("--all", "--headless")):
        refused = project.run("work", *words, "--approve", "all", expect=2)
        assert "may not loosen `max_waves`" in refused.stderr
    [task] = project.json("tasks", "--json")
    assert task["status"] == "todo"
    assert project.json("chain", "--json") == []


def test_ctrl_c_stops_between_steps_and_the_command_goes_on(project: Project) -> None:
    slow = AT_ONCE.replace("[[turn.call]]", 'text = "one two three"\npace = 0.75\n[[turn.call]]', 1)
    model = scenario(project, slow)
    words = ("work", "--task", "T-1", "--model", model, "--approve", "all")
    running = project.start(*words)
    assert running.stderr is not None
    # Its first session stands in the journal when it can be stopped.
    with sqlite3.connect(state_of(project.root) / "cockpit.db") as store:
        while not store.execute("SELECT 1 FROM sessions").fetchall():
            assert running.poll() is None
            time.sleep(0.02)
    store.close()
    running.send_signal(signal.SIGINT)
    told, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert "T-1 is interrupted" in told
    assert "T-1 is done" in project.run(*words).stdout


def test_what_cannot_be_is_said(project: Project, tmp_path: Path) -> None:
    assert (
        "There is no task T-9"
        in project.run("work", "--task", "T-9", "--model", project.script(""), expect=2).stderr
    )
    outside = Project(tmp_path / "plain", tmp_path / "config")
    outside.root.mkdir()
    assert "not a git repository" in outside.run("work", "--task", "T-1", expect=2).stderr
    assert "No worktrees yet" in outside.run("chain", "worktrees").stderr

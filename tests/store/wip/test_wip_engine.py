"""A session on a task of the backlog, from the command line to its end, with a scripted agent."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from commands.cli_world import Project, git
from copied_repository import copy_repository
from loop.loop_calc import make_calc
from loop.scenario import ask, call, finish, turn
from state_for_tests import state_of

from cockpit.core.project_paths import locate_project
from cockpit.loop.phases.capture_action_wip import capture_work_in_progress
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.wave_context import WaveContext
from cockpit.store.backlog import tasks
from cockpit.store.sessions import outbox, sessions, waves

pytestmark = pytest.mark.slow

WORKS = (
    ask("file:calc.py")
    + turn("edit_file", "wave_from = 2", path="calc.py", old="a - b", new="a + b")
    + call("write_file", path="notes.md", content="# Notes\n")
    + call("run", argv=["python3", "-m", "unittest", "test_calc"], reason="try it")
    + turn("git_commit", "wave_from = 3", message="Add adds", paths=["calc.py", "notes.md"])
    + turn("run", "wave_from = 4", argv=["python3", "-c", "import not_there"], reason="try it")
    + finish("wave_from = 5", summary="It adds.")
)
RECORDS = (
    turn(
        "update_wip",
        decisions=[{"decision": "Keep the name add", "reason": "callers use it"}],
        context="sub mirrors add",
        next_step="write sub",
    )
    + call("write_file", path="sub.py", content="def sub(a, b):\n    return a - b\n")
    + finish('called = ["update_wip"]', summary="It subtracts.")
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository with a function that subtracts, the test that says so, and a task for it."""
    made = Project(copy_repository(make_calc, tmp_path / "calc"), tmp_path / "config")
    made.run("tasks", "add", "Make add add", "--description", "It subtracts.")
    return made


def wip_of(project: Project) -> dict[str, Any]:
    told: dict[str, Any] = project.json("tasks", "wip", "T-1", "--json")
    return dict(told["wip"] or {})


def rows(project: Project, action: str) -> list[Any]:
    found = [
        json.loads(line) for line in project.run("journal", "--all", "--json").stdout.splitlines()
    ]
    return [row for row in found if row["action"] == action]


def test_the_work_of_an_agent_is_kept_on_its_task_and_captured_again_from_receipts(project):
    words = ("--task", "t-1", "--model", project.script(WORKS), "--approve", "all")
    project.run("run", "fix calc so that it adds", *words)
    known = wip_of(project)
    head = git(project.root, "rev-parse", "HEAD").strip()
    assert known["files_modified"] == ["calc.py", "notes.md"]
    assert (known["uncommitted_changes"], known["last_commit"]) == (False, head)
    results = known["test_results"]
    assert (results["runner"], results["passed"], results["failed"]) == ("unittest", 1, 0)
    (error,) = known["errors"]
    assert error["type"] == "module_not_found_error"
    assert "not_there" in error["message"]
    told = rows(project, "wip.updated")
    assert [sorted(row["detail"]["patch"]) for row in told] == [
        ["files_modified", "uncommitted_changes"],
        ["files_modified", "uncommitted_changes"],
        ["test_results"],
        ["last_commit", "uncommitted_changes"],
        ["errors"],
    ]
    session = rows(project, "session.created")[0]
    assert session["detail"]["task_id"] == "T-1"
    assert {row["session_id"] for row in told} == {session["session_id"]}
    # Each right after its receipt, and before whatever comes next.
    confirmed = rows(project, "action.confirmed")[0]["seq"]
    assert confirmed < told[0]["seq"] < rows(project, "action.confirmed")[1]["seq"]
    assert project.json("tasks", "T-1", "--json")["status"] == "done"

    # A process may die between an action's receipt and the capture, which the next one makes up for.
    for statement in ("", "UPDATE tasks SET work_in_progress=NULL"):
        assert asyncio.run(capture_again(project, statement)) == known


async def capture_again(project: Project, statement: str) -> object:
    """Capture what the receipts of the only session say, after ``statement``; returns what is known then."""
    async with open_runtime(locate_project(project.root), RuntimeSettings()) as runtime:
        await runtime.store.write(lambda tx: tx.execute(statement))
        await _capture(runtime)
        return runtime.store.read_now(lambda c: tasks.load(c, "T-1").wip)


async def _capture(runtime: Runtime) -> None:
    store = runtime.store
    (session,) = store.read_now(sessions.select_recent)
    for wave in store.read_now(lambda c: waves.select_for_session(c, session.session_id)):
        context = WaveContext(runtime.engine, session, wave)
        for action in store.read_now(lambda c, w=wave: outbox.select_for_wave(c, w.wave_id)):
            await capture_work_in_progress(context, action)


def test_memory_flows_from_one_task_to_the_next(project):
    project.run("tasks", "add", "Build sub on add", "--depends-on", "T-1")
    project.run("tasks", "handoff", "T-1", "PASS", "add refuses text now.", "--file", "calc.py")
    project.run("tasks", "move", "T-1", "done")
    finished = project.run("tasks", "wip", "T-1").stdout
    assert "T-1 · done · Make add add\nT-1 is done: nothing is left to resume." in finished
    model = project.script(RECORDS)
    project.run("run", "--task", "T-2", "--model", model, "--approve", "all")
    with sqlite3.connect(state_of(project.root) / "cockpit.db") as connection:
        (task,) = connection.execute(
            "SELECT normalized_json FROM observed_facts WHERE source_ref='task:opening'"
        ).fetchone()
        (result,) = connection.execute(
            "SELECT normalized_json FROM observed_facts WHERE source_ref='exchange:1.1'"
        ).fetchone()
    assert "- T-1 PASS: add refuses text now. Files: calc.py." in task
    assert "Recorded with the task: 1 decision, context, next step." in result
    known = project.json("tasks", "wip", "T-2", "--json")
    assert known["status"] == "done"
    assert known["wip"]["decisions"] == [
        {"decision": "Keep the name add", "reason": "callers use it"}
    ]
    assert (known["wip"]["context"], known["wip"]["next_step"]) == ("sub mirrors add", "write sub")
    shown = project.run("tasks", "wip", "T-2").stdout
    assert "T-2 is done: nothing is left to resume." in shown
    assert "Keep the name add: callers use it" in shown
    assert "Resuming" not in shown


def test_without_a_task_nothing_is_captured(project):
    project.run("run", "add sub", "--model", project.script(RECORDS), "--approve", "all")
    assert rows(project, "action.confirmed")
    assert rows(project, "wip.updated") == []
    assert wip_of(project) == {}


def test_a_task_that_there_is_not_begins_no_session(project):
    done = project.run("run", "x", "--task", "T-9", "--model", "offline", expect=2)
    assert "There is no task T-9" in done.stderr
    assert rows(project, "session.created") == []
    told = project.run("run", "--task", "T-1", "--continue", "last", expect=2)
    assert "keeps the task" in told.stderr

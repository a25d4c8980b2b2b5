"""``cockpit tasks wip`` and ``handoff`` as a person and a script use them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands.cli_world import Project, git

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository with two tasks, the first in progress."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    made = Project(root, tmp_path / "config")
    made.run("tasks", "add", "Add the token")
    made.run("tasks", "add", "Let it expire")
    made.run("tasks", "move", "T-1", "in_progress")
    return made


def test_what_is_set_is_merged_and_shown(project):
    assert "No work in progress recorded" in project.run("tasks", "wip", "T-1").stderr
    first = project.json(
        "tasks", "wip", "t-1", "phase=testing", "decision=JWT", "file=src/a.py", "uncommitted_changes=true",
        "test_results.passed=12", "test_results.failed=1", "test_results.failing_test=test_b", "--json",
    )  # fmt: skip
    assert first["wip"] == {
        "phase": "testing",
        "decisions": [{"decision": "JWT"}],
        "files_modified": ["src/a.py"],
        "uncommitted_changes": True,
        "test_results": {"passed": 12, "failed": 1, "failing_test": "test_b"},
    }
    patch = {"decisions": [{"decision": "RS256", "reason": "keys"}], "next_step": "fix test_b"}
    merged = project.run("tasks", "wip", "T-1", "--from", "-", stdin=json.dumps(patch)).stdout
    shown = project.run("tasks", "wip", "T-1").stdout
    assert shown == merged
    assert "  JWT\n" in shown
    assert "T-1 · in progress · Add the token" in shown
    assert "Resuming T-1 from: testing phase, next: fix test_b" in shown
    assert "  RS256: keys" in shown
    assert "passed 12, failed 1, failing_test test_b" in shown
    told = project.json("tasks", "wip", "T-1", "--json")
    assert (told["task_id"], told["wip"]["next_step"]) == ("T-1", "fix test_b")


def test_wrong_use_is_told_in_one_sentence(project):
    deep = '{"context": ' * 20_000
    for words, stdin, told in (
        (("tasks", "wip", "T-1", "testing"), "", "is not KEY=VALUE"),
        (("tasks", "wip", "T-1", "stage=testing"), "", "has no stage; it has phase"),
        (("tasks", "wip", "T-1", "--from", "nowhere.json"), "", "cannot be read"),
        (("tasks", "wip", "T-1", "--from", "-"), deep, "is not JSON"),
        (("tasks", "wip", "T-1", "--from", "-"), "[1]", "JSON object"),
        (("tasks", "wip", "T-1", "test_results.failed=NaN"), "", "finite"),
        (("tasks", "wip", "T-9"), "", "There is no task T-9"),
        (("tasks", "handoff", "T-1"), "", "T-1 has no handoff yet"),
        (("tasks", "handoff", "T-1", "OK", "done"), "", "PASS, FAIL or BLOCKED, not 'OK'"),
        (("tasks", "handoff", "T-1", "PASS", " "), "", "needs a summary"),
    ):
        assert told in project.run(*words, stdin=stdin, expect=2).stderr


def test_tasks_in_progress_are_listed(project):
    project.run("tasks", "wip", "T-1", "phase=testing")
    assert "T-1   testing  –          Add the token" in project.run("tasks", "wip").stdout
    assert [row["task_id"] for row in project.json("tasks", "wip", "--json")] == ["T-1"]


def test_a_handoff_goes_round(project):
    (project.root / "log.txt").write_text("everything that was said\n", encoding="utf-8")
    made = project.json(
        "tasks", "handoff", "T-1", "pass", "The token is there.", "--file", "a.py",
        "--file", "b.py", "--details", "log.txt", "--json",
    )  # fmt: skip
    assert made == {"status": "PASS", "summary": "The token is there."}
    shown = project.run("tasks", "handoff", "T-1")
    assert "T-1 · PASS" in shown.stdout
    assert "  b.py" in shown.stdout
    assert "everything that was said" in shown.stdout
    told = project.json("tasks", "handoff", "T-1", "--json")
    assert told["files_changed"] == ["a.py", "b.py"]
    assert told["full_details"] == "everything that was said\n"
    (row,) = project.json("tasks", "handoff", "--json")
    assert (row["task_id"], row["status"]) == ("T-1", "PASS")
    assert "The token is there." in project.run("tasks", "handoff").stdout


def test_who_has_no_scope_for_it_is_refused(project):
    issued = project.run("tokens", "issue", "--namespace", "ci", "--scope", "work.read", "--json")
    secret = json.loads(issued.stdout)["token"]
    for words in (("tasks", "wip", "T-1", "phase=x"), ("tasks", "handoff", "T-1", "PASS", "done")):
        project.extra["COCKPIT_TOKEN"] = secret
        done = project.run(*words, expect=3)
        assert "work.write" in done.stderr
    del project.extra["COCKPIT_TOKEN"]
    both = ("--scope", "work.read", "--scope", "work.write", "--json")
    issued = project.run("tokens", "issue", "--namespace", "ci", *both)
    project.extra["COCKPIT_TOKEN"] = json.loads(issued.stdout)["token"]
    project.run("tasks", "wip", "T-1", "phase=x")
    del project.extra["COCKPIT_TOKEN"]
    rows = [
        json.loads(line) for line in project.run("journal", "--all", "--json").stdout.splitlines()
    ]
    assert [row["actor"] for row in rows if row["action"] == "wip.updated"] == ["ci"]

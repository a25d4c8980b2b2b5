"""``cockpit wip`` and ``cockpit handoff`` as a person and a script use them."""

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
    assert "No work in progress recorded" in project.run("wip", "T-1").stderr
    first = project.json(
        "wip", "set", "t-1", "phase=testing", "decision=JWT", "file=src/a.py", "uncommitted_changes=true",
        "test_results.passed=12", "test_results.failed=1", "test_results.failing_test=test_b",
    )  # fmt: skip
    assert first == {
        "phase": "testing",
        "decisions": [{"decision": "JWT"}],
        "files_modified": ["src/a.py"],
        "uncommitted_changes": True,
        "test_results": {"passed": 12, "failed": 1, "failing_test": "test_b"},
    }
    patch = {"decisions": [{"decision": "RS256", "reason": "keys"}], "next_step": "fix test_b"}
    done = project.run("wip", "set", "T-1", "--json", "-", stdin=json.dumps(patch))
    assert json.loads(done.stdout)["decisions"] == [{"decision": "JWT"}, *patch["decisions"]]
    shown = project.run("wip", "T-1").stdout
    assert "T-1 · in progress · Add the token" in shown
    assert "Resuming T-1 from: testing phase, next: fix test_b" in shown
    assert "  RS256: keys" in shown
    assert "passed 12, failed 1, failing_test test_b" in shown
    told = project.json("wip", "T-1", "--json")
    assert (told["task_id"], told["wip"]["next_step"]) == ("T-1", "fix test_b")


def test_wrong_use_is_told_in_one_sentence(project):
    deep = '{"context": ' * 20_000
    for words, stdin, told in (
        (("wip", "set", "T-1"), "", "Nothing to merge"),
        (("wip", "set", "T-1", "testing"), "", "is not KEY=VALUE"),
        (("wip", "set", "T-1", "stage=testing"), "", "has no stage; it has phase"),
        (("wip", "set", "T-1", "--json", "nowhere.json"), "", "cannot be read"),
        (("wip", "set", "T-1", "--json", "-"), deep, "is not JSON"),
        (("wip", "set", "T-1", "--json", "-"), "[1]", "JSON object"),
        (("wip", "set", "T-1", "test_results.failed=NaN"), "", "finite"),
        (("wip", "T-9"), "", "There is no task T-9"),
        (("handoff", "T-1"), "", "T-1 has no handoff yet"),
        (("handoff", "set", "T-1", "OK", "done"), "", "PASS, FAIL or BLOCKED, not 'OK'"),
        (("handoff", "set", "T-1", "PASS", " "), "", "needs a summary"),
    ):
        assert told in project.run(*words, stdin=stdin, expect=2).stderr


def test_tasks_in_progress_are_listed(project):
    project.run("wip", "set", "T-1", "phase=testing")
    assert "T-1   testing  –          Add the token" in project.run("wip").stdout
    assert [row["task_id"] for row in project.json("wip", "--json")] == ["T-1"]


def test_a_handoff_goes_round(project):
    (project.root / "log.txt").write_text("everything that was said\n", encoding="utf-8")
    made = project.json(
        "handoff", "set", "T-1", "pass", "The token is there.", "--files", "a.py,b.py",
        "--files", "c.py", "--details", "log.txt", "--json",
    )  # fmt: skip
    assert made == {"status": "PASS", "summary": "The token is there."}
    shown = project.run("handoff", "T-1")
    assert "T-1 · PASS" in shown.stdout
    assert "  b.py" in shown.stdout
    assert "everything" not in shown.stdout
    assert "--details" in shown.stdout
    assert "everything that was said" in project.run("handoff", "t-1", "--details").stdout
    told = project.json("handoff", "T-1", "--json")
    assert told["files_changed"] == ["a.py", "b.py", "c.py"]
    assert "full_details" not in told
    whole = project.json("handoff", "T-1", "--details", "--json")
    assert whole["full_details"] == "everything that was said\n"
    (row,) = project.json("handoff", "--json")
    assert (row["task_id"], row["status"]) == ("T-1", "PASS")
    assert "The token is there." in project.run("handoff").stdout


def test_who_has_no_scope_for_it_is_refused(project):
    issued = project.run("tokens", "issue", "--namespace", "ci", "--scope", "work.read", "--json")
    secret = json.loads(issued.stdout)["token"]
    for words in (("wip", "set", "T-1", "phase=x"), ("handoff", "set", "T-1", "PASS", "done")):
        project.extra["COCKPIT_TOKEN"] = secret
        done = project.run(*words, expect=3)
        assert "work.write" in done.stderr
    del project.extra["COCKPIT_TOKEN"]
    issued = project.run("tokens", "issue", "--namespace", "ci", "--scope", "work.write", "--json")
    project.extra["COCKPIT_TOKEN"] = json.loads(issued.stdout)["token"]
    project.run("wip", "set", "T-1", "phase=x")
    del project.extra["COCKPIT_TOKEN"]
    rows = [
        json.loads(line) for line in project.run("debug", "journal", "export").stdout.splitlines()
    ]
    assert [row["actor"] for row in rows if row["action"] == "wip.updated"] == ["ci"]

"""The states of projects that are gone are listed, and deleted when the user says so."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import run_cockpit
from cli_world import Project

pytestmark = pytest.mark.slow


def find_state(project: Project) -> Path:
    return Path(project.json("debug", "state", ".", "--json")["path"])


def abandon(project: Project, name: str) -> Path:
    """Make a project with state beside this one and delete it; return its state."""
    root = project.root.parent / name
    shutil.copytree(project.root, root)
    other = Project(root, project.config, project.extra)
    other.run("tasks", "add", "Left behind")
    state = find_state(other)
    shutil.rmtree(root)
    return state


def test_states_without_a_project_are_listed_and_deleted_when_asked(
    project: Project, tmp_path: Path
) -> None:
    project.extra["COCKPIT_STATE_DIR"] = str(tmp_path / "states")
    project.run("tasks", "add", "Mine")
    mine = find_state(project)
    assert states_check(project)["state"] == "ok"
    first, second = abandon(project, "first"), abandon(project, "second")
    anchors = [tmp_path / "states" / "anchors" / each.name for each in (first, second, mine)]
    check = states_check(project)
    assert check["state"] == "missing"
    assert first.name in check["found"] and second.name in check["found"]
    assert "cockpit debug state --clean" in check["mend"]

    refused = project.run("debug", "state", "--clean", expect=2).stderr
    assert "nothing was deleted" in refused and first.name in refused
    assert "exists" in project.run("debug", "state", "--clean", mine.name, "--yes", expect=3).stderr
    assert all(each.exists() for each in (first, second, mine, *anchors))

    with closing(sqlite3.connect(first / "cockpit.db")) as connection:
        connection.execute("BEGIN IMMEDIATE")
        used = project.run("debug", "state", "--clean", first.name, "--yes", expect=3).stderr
        assert "Another process uses" in used and first.exists()
    assert project.json("debug", "state", "--clean", first.name, "--yes", "--json") == {
        "deleted": [first.name]
    }
    assert not first.exists() and second.exists() and not anchors[0].exists()
    assert "Deleted 1 state." in project.run("debug", "state", "--clean", "--yes").stderr
    assert not second.exists() and mine.exists() and anchors[2].exists()
    assert "exists" in project.run("debug", "state", "--clean").stderr
    assert project.json("debug", "journal", "--json")["anchor"] is None


def states_check(project: Project) -> dict[str, str]:
    """What `cockpit doctor` says of the states; other checks depend on the machine."""
    told = run_cockpit.run(("doctor", "--json"), cwd=project.root, env=project.env, patience_s=60)
    (check,) = [each for each in json.loads(told.stdout) if each["name"] == "states"]
    return dict(check)

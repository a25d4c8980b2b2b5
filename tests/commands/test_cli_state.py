"""The state is moved out of the checkout once, with consent; one that came with it is never opened."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_world import Project
from state_for_tests import state_of

from cockpit.core.project_paths import locate_project


def old_state(project: Project) -> Path:
    """Put the project's state where older versions kept it."""
    project.run("tasks", "add", "Mend the sum")
    state, old = state_of(project.root), project.root / ".cockpit" / "state"
    old.parent.mkdir(exist_ok=True)
    (state / "project.json").unlink()
    state.rename(old)
    (old / ".gitignore").write_text("*\n")
    return old


def test_a_state_in_the_checkout_is_moved_once(project: Project) -> None:
    old = old_state(project)
    refused = project.run("tasks", "list", expect=3)
    assert "cockpit state move" in refused.stderr and not state_of(project.root).exists()
    project.run("run", "investigate", "--model", "offline", expect=3)
    assert not state_of(project.root).exists(), "no empty store is begun beside it"
    moved = project.json("state", "move", "--json")
    assert (moved["before"], moved["after"]) == (str(old), str(state_of(project.root)))
    assert [task["title"] for task in project.json("tasks", "list", "--json")] == ["Mend the sum"]
    assert not old.exists()
    assert {path.stat().st_mode & 0o077 for path in state_of(project.root).rglob("*")} == {0}
    assert project.json("journal", "verify", "--json")["ok"]
    assert "contains no state" in project.run("state", "move", expect=2).stderr


def test_worktrees_are_moved_with_it(project: Project) -> None:
    old = old_state(project)
    tree = old / "worktrees" / "T-1"
    project.git("worktree", "add", "-q", "-b", "cockpit/T-1", str(tree))
    (tree / "half.py").write_text("half = 1\n")
    with closing(sqlite3.connect(old / "cockpit.db")) as connection, connection:
        connection.execute(
            "INSERT INTO worktrees(name, task_id, chain_id, path, branch, base_commit, status, created_at,"
            " updated_at) VALUES ('T-1', 'T-1', '', ?, 'cockpit/T-1', 'HEAD', 'kept', '', '')",
            (str(tree),),
        )
    project.run("state", "move")
    (row,) = project.json("worktrees", "list", "--json")
    moved = Path(row["path"])
    assert moved.is_relative_to(state_of(project.root)) and (moved / "half.py").exists()
    listed = project.git("worktree", "list", "--porcelain")
    assert f"worktree {moved}\n" in listed and "prunable" not in listed


def test_leaving_it_is_a_choice_of_the_user(project: Project) -> None:
    old = old_state(project)
    project.run("state", "move", "--leave")
    assert project.json("tasks", "list", "--json") == []
    assert (old / "cockpit.db").exists()


FOREIGN = {
    "tracked": "git tracks files",
    "committed": "git tracks files",
    "link": "is a link",
    "folder link": "is a link",
    "owner": "another user",
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_state_that_came_with_the_checkout_is_never_opened(project: Project, kind: str) -> None:
    if kind == "owner" and os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    old = old_state(project)
    if kind in ("tracked", "committed"):
        project.git("add", "-f", ".cockpit/state/cockpit.db")
        if kind == "committed":
            project.git("commit", "-qm", "State")
            project.git("rm", "-q", "--cached", ".cockpit/state/cockpit.db")
    elif kind == "link":
        (old / "cockpit.db").rename(old / "real.db")
        (old / "cockpit.db").symlink_to("real.db")
    elif kind == "folder link":
        old.rename(project.root.parent / "elsewhere")
        old.symlink_to(project.root.parent / "elsewhere")
    else:
        os.chown(old / "cockpit.db", 12345, 12345)
    told = project.run("tasks", "list", "--json")
    assert json.loads(told.stdout) == []
    assert "was not opened" in told.stderr and FOREIGN[kind] in told.stderr
    assert "never opened" in project.run("state", "move", expect=3).stderr
    project.run("tasks", "add", "Another")
    assert len(project.json("tasks", "list", "--json")) == 1


def test_the_state_of_another_repository_is_not_moved_here(project: Project) -> None:
    old = old_state(project)
    with closing(sqlite3.connect(old / "cockpit.db")) as connection, connection:
        connection.execute(
            "INSERT INTO worktrees(name, task_id, chain_id, path, branch, base_commit, status, created_at,"
            " updated_at) VALUES ('T-1', 'T-1', '', '/home/other/.cockpit/state/worktrees/T-1', 'b', 'c',"
            " 'active', '', '')"
        )
    assert "another repository" in project.run("state", "move", expect=3).stderr
    assert (old / "cockpit.db").exists() and not state_of(project.root).exists()


def test_a_trigger_in_it_is_refused_before_it_is_moved(project: Project) -> None:
    old = old_state(project)
    with closing(sqlite3.connect(old / "cockpit.db")) as connection, connection:
        connection.execute("CREATE TRIGGER mine AFTER INSERT ON journal BEGIN SELECT 1; END")
    assert "trigger mine" in project.run("state", "move", expect=1).stderr
    assert not (state_of(project.root) / "cockpit.db").exists()


def test_one_that_is_in_use_is_not_moved(project: Project) -> None:
    old = old_state(project)
    with closing(sqlite3.connect(old / "cockpit.db")) as connection:
        connection.execute("SELECT count(*) FROM tasks").fetchone()
        assert "Another process uses" in project.run("state", "move", expect=3).stderr
    project.run("state", "move")


def test_a_repository_that_was_moved_adopts_its_state(project: Project) -> None:
    project.run("tasks", "add", "Mend the sum")
    before = project.root
    assert project.run("state", "adopt", str(before), expect=3).stderr.count("still exists") == 1
    state = state_of(before)
    project.root = before.parent / "elsewhere" / before.name
    project.root.parent.mkdir()
    before.rename(project.root)
    told = project.run("tasks", "list")
    assert f"cockpit state adopt {state.name}" in told.stderr
    gone = [row for row in project.json("state", "list", "--json") if row["home"] == str(before)]
    assert [row["exists"] for row in gone] == [False]
    project.run("state", "adopt", str(before))
    assert len(project.json("tasks", "list", "--json")) == 1
    assert not state.exists() and locate_project(project.root).database.exists()
    assert project.json("state", "show", "--json")["exists"]


def test_a_copy_of_a_repository_has_a_state_of_its_own(project: Project) -> None:
    project.run("tasks", "add", "Mend the sum")
    copy = project.root.parent / "copy"
    shutil.copytree(project.root, copy, symlinks=True)
    project.root = copy
    assert project.json("tasks", "list", "--json") == []


def test_the_holder_of_a_token_moves_nothing(project: Project) -> None:
    old_state(project)
    project.extra["COCKPIT_TOKEN"] = "x"
    assert "Only you" in project.run("state", "move", expect=2).stderr

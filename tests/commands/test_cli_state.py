"""The state is moved out of the checkout once, with consent; one that came with it is never opened."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import run_cockpit
from cli_world import Project
from state_for_tests import state_of

from cockpit.core.project.state_in_checkout import find_old_state
from cockpit.core.project_paths import locate_project

pytestmark = pytest.mark.slow


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
        connection.execute(WORKTREE, (str(tree),))
    project.run("state", "move")
    (row,) = project.json("worktrees", "list", "--json")
    moved = Path(row["path"])
    assert moved.is_relative_to(state_of(project.root)) and (moved / "half.py").exists()
    listed = project.git("worktree", "list", "--porcelain")
    assert f"worktree {moved}\n" in listed and "prunable" not in listed


WORKTREE = (
    "INSERT INTO worktrees(name, task_id, chain_id, path, branch, base_commit, status, created_at,"
    " updated_at) VALUES ('T-1', 'T-1', '', ?, 'cockpit/T-1', 'HEAD', 'kept', '', '')"
)
FOREIGN = {
    "committed": "git tracks files",
    "folder link": "is a link",
    "owner": "another user",
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_state_that_came_with_the_checkout_is_never_opened(
    project: Project, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = old_state(project)
    if kind == "committed":
        project.git("add", "-f", ".cockpit/state/cockpit.db")
        project.git("commit", "-qm", "State")
        project.git("rm", "-q", "--cached", ".cockpit/state/cockpit.db")
    elif kind == "folder link":
        old.rename(project.root.parent / "elsewhere")
        old.symlink_to(project.root.parent / "elsewhere")
    elif os.geteuid() == 0:
        os.chown(old / "cockpit.db", 12345, 12345)
    else:
        # Only the administrator can give files away: look at one's own with the eyes of another user.
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        found = find_old_state(locate_project(project.root))
        assert found is not None and FOREIGN[kind] in found.foreign
        return
    told = project.run("tasks", "list", "--json")
    assert json.loads(told.stdout) == []
    assert "was not opened" in told.stderr and FOREIGN[kind] in told.stderr
    assert "never opened" in project.run("state", "move", expect=3).stderr
    project.run("tasks", "add", "Another")
    assert len(project.json("tasks", "list", "--json")) == 1


def test_a_repository_that_was_moved_adopts_its_state(project: Project, tmp_path: Path) -> None:
    """With its anchor; a copy of the repository has a state of its own."""
    project.extra["COCKPIT_STATE_DIR"] = str(tmp_path / "states")
    project.run("tasks", "add", "Mend the sum")
    copy = Project(tmp_path / "copy", project.config, project.extra)
    shutil.copytree(project.root, copy.root, symlinks=True)
    assert copy.json("tasks", "list", "--json") == []
    before = project.root
    assert project.run("state", "adopt", str(before), expect=3).stderr.count("still exists") == 1
    state = Path(project.json("state", "show", "--json")["state"])
    project.root = before.parent / "elsewhere" / before.name
    project.root.parent.mkdir()
    before.rename(project.root)
    told = project.run("tasks", "list")
    assert f"cockpit state adopt {state.name}" in told.stderr
    gone = [row for row in project.json("state", "list", "--json") if row["home"] == str(before)]
    assert [row["exists"] for row in gone] == [False]
    project.run("state", "adopt", str(before))
    done = project.run("tasks", "list", "--json")
    assert len(json.loads(done.stdout)) == 1 and "anchor" not in done.stderr
    assert not state.exists()
    assert project.json("journal", "verify", "--json")["anchor"] is None
    assert project.json("state", "show", "--json")["exists"]


def abandon(project: Project, name: str) -> Path:
    """Make a project with state beside this one and delete it; return its state."""
    root = project.root.parent / name
    shutil.copytree(project.root, root)
    other = Project(root, project.config, project.extra)
    other.run("tasks", "add", "Left behind")
    state = Path(other.json("state", "show", "--json")["state"])
    shutil.rmtree(root)
    return state


def test_states_without_a_project_are_listed_and_deleted_when_asked(
    project: Project, tmp_path: Path
) -> None:
    project.extra["COCKPIT_STATE_DIR"] = str(tmp_path / "states")
    project.run("tasks", "add", "Mine")
    mine = Path(project.json("state", "show", "--json")["state"])
    assert states_check(project)["state"] == "ok"
    first, second = abandon(project, "first"), abandon(project, "second")
    anchors = [tmp_path / "states" / "anchors" / each.name for each in (first, second, mine)]
    check = states_check(project)
    assert check["state"] == "missing"
    assert first.name in check["found"] and second.name in check["found"]
    assert "cockpit state clean" in check["mend"]

    refused = project.run("state", "clean", expect=2).stderr
    assert "nothing was deleted" in refused and first.name in refused
    assert "exists" in project.run("state", "clean", mine.name, "--yes", expect=3).stderr
    assert all(each.exists() for each in (first, second, mine, *anchors))

    with closing(sqlite3.connect(first / "cockpit.db")) as connection:
        connection.execute("BEGIN IMMEDIATE")
        used = project.run("state", "clean", first.name, "--yes", expect=3).stderr
        assert "Another process uses" in used and first.exists()
    assert project.json("state", "clean", first.name, "--yes", "--json") == {
        "deleted": [first.name]
    }
    assert not first.exists() and second.exists() and not anchors[0].exists()
    assert "Deleted 1 state." in project.run("state", "clean", "--yes").stderr
    assert not second.exists() and mine.exists() and anchors[2].exists()
    assert "exists" in project.run("state", "clean").stderr
    assert project.json("journal", "verify", "--json")["anchor"] is None


def states_check(project: Project) -> dict[str, str]:
    """What `cockpit doctor` says of the states; other checks depend on the machine."""
    told = run_cockpit.run(("doctor", "--json"), cwd=project.root, env=project.env, patience_s=60)
    (check,) = [each for each in json.loads(told.stdout) if each["name"] == "states"]
    return dict(check)


def test_a_state_that_cannot_be_moved_stays(project: Project) -> None:
    """In use, with a trigger, of another repository, or moved by the holder of a token."""
    old = old_state(project)
    with closing(sqlite3.connect(old / "cockpit.db")) as connection:
        connection.execute("SELECT count(*) FROM tasks").fetchone()
        assert "Another process uses" in project.run("state", "move", expect=3).stderr
    with closing(sqlite3.connect(old / "cockpit.db")) as connection, connection:
        connection.execute("CREATE TRIGGER mine AFTER INSERT ON journal BEGIN SELECT 1; END")
    assert "trigger mine" in project.run("state", "move", expect=1).stderr
    with closing(sqlite3.connect(old / "cockpit.db")) as connection, connection:
        connection.execute("DROP TRIGGER mine")
        connection.execute(WORKTREE, ("/home/other/.cockpit/state/worktrees/T-1",))
    assert "another repository" in project.run("state", "move", expect=3).stderr
    project.extra["COCKPIT_TOKEN"] = "x"
    assert "Only you" in project.run("state", "move", expect=2).stderr
    del project.extra["COCKPIT_TOKEN"]
    assert (old / "cockpit.db").exists() and not state_of(project.root).exists()
    project.run("state", "move", "--leave")
    assert project.json("tasks", "list", "--json") == [], "leaving it is the user's choice"
    assert (old / "cockpit.db").exists()

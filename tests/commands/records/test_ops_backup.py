"""``cockpit backup`` and ``cockpit backup --restore``, as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_world import Project
from state_for_tests import state_of

from cockpit.store.chains import worktrees
from cockpit.store.db.database import Store

pytestmark = pytest.mark.slow


def test_a_state_goes_into_a_file_and_comes_back(project: Project, tmp_path: Path) -> None:
    file = str(tmp_path / "parcel.backup")
    assert "Nothing was recorded" in project.run("backup", file, expect=2).stderr
    assert "no file" in project.run("backup", "--restore", file, expect=2).stderr
    project.run("tasks", "add", "Kept")
    written = project.json("backup", file, "--json")
    assert written["files"] >= 1 and written["seq"] > 0
    assert "Pass --replace" in project.run("backup", file, expect=3).stderr
    project.run("tasks", "add", "Lost")
    assert "--replace" in project.run("backup", "--restore", file, expect=3).stderr
    restored = project.json("backup", "--restore", "--replace", file, "--json")
    assert (restored["seq"], restored["digest"]) == (written["seq"], written["digest"])
    ended = project.run("tasks")
    assert "Kept" in ended.stdout and "Lost" not in ended.stdout
    assert "Warning" not in ended.stderr, "the anchor is that of the restored journal"
    assert project.run("debug", "journal").stdout.startswith("ok")
    project.extra["COCKPIT_TOKEN"] = "ckp_any"
    assert "Only you" in project.run("backup", f"{file}.2", expect=2).stderr
    assert "Only you" in project.run("backup", "--restore", "--replace", file, expect=2).stderr
    assert not Path(f"{file}.2").exists()


def test_what_a_backup_leaves_out_is_named_and_made_again_elsewhere(
    project: Project, tmp_path: Path
) -> None:
    file = str(tmp_path / "parcel.backup")
    (project.root / "guide.md").write_text("# Guide\n\nA release is made on Fridays.\n")
    project.git("add", "guide.md")
    project.git("commit", "--quiet", "-m", "Add a guide")
    project.run("tasks", "add", "Kept")
    assert "Fridays" in project.run("knowledge", "how is a release made").stdout
    tree = tmp_path / "tree"
    project.git("worktree", "add", "--quiet", "-b", "cockpit/t-1", str(tree))
    head = project.git("rev-parse", "HEAD").strip()
    with Store.open(state_of(project.root) / "cockpit.db") as store:
        store.write_now(
            lambda tx: worktrees.register(
                tx,
                name="t-1",
                task_id="T-1",
                chain_id="",
                path=str(tree),
                branch="cockpit/t-1",
                base_commit=head,
            )
        )
    assert project.json("backup", file, "--json")["unsaved"] == {}
    (tree / "new.py").write_text("x = 1\n")
    assert "1 changed file of worktree t-1" in project.run("backup", "--replace", file).stderr
    # Another place: its own clone, its own state; neither the worktree nor the index came along.
    elsewhere = Project(tmp_path / "elsewhere" / "parcel", tmp_path / "config", dict(project.extra))
    elsewhere.root.parent.mkdir()
    project.git("clone", "--quiet", str(project.root), str(elsewhere.root))
    restored = elsewhere.run("backup", "--restore", file).stderr
    assert "built when it is next used" in restored
    assert "Kept" in elsewhere.run("tasks").stdout
    assert not list(state_of(elsewhere.root).glob("knowledge*"))
    assert "Fridays" in elsewhere.run("knowledge", "how is a release made").stdout
    assert elsewhere.run("debug", "journal").stdout.startswith("ok")

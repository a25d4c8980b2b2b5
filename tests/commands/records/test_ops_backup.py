"""``cockpit backup`` and ``cockpit restore``, as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_world import Project

pytestmark = pytest.mark.slow


def test_a_state_goes_into_a_file_and_comes_back(project: Project, tmp_path: Path) -> None:
    file = str(tmp_path / "parcel.backup")
    assert "Nothing was recorded" in project.run("backup", file, expect=2).stderr
    assert "no file" in project.run("restore", file, expect=2).stderr
    project.run("tasks", "add", "Kept")
    written = project.json("backup", file, "--json")
    assert written["files"] >= 1 and written["seq"] > 0
    assert "Pass --replace" in project.run("backup", file, expect=3).stderr
    project.run("tasks", "add", "Lost")
    assert "--replace" in project.run("restore", file, expect=3).stderr
    restored = project.json("restore", "--replace", file, "--json")
    assert (restored["seq"], restored["digest"]) == (written["seq"], written["digest"])
    ended = project.run("tasks", "list")
    assert "Kept" in ended.stdout and "Lost" not in ended.stdout
    assert "Warning" not in ended.stderr, "the anchor is that of the restored journal"
    assert project.run("journal", "verify").stdout.startswith("ok")
    project.extra["COCKPIT_TOKEN"] = "ckp_any"
    assert "Only you" in project.run("backup", f"{file}.2", expect=2).stderr
    assert "Only you" in project.run("restore", "--replace", file, expect=2).stderr
    assert not Path(f"{file}.2").exists()

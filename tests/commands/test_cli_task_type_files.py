"""``cockpit task-types``: list, show and write; and that a change of a file needs no new start."""

from __future__ import annotations

from pathlib import Path

from cli_world import Project

REFACTOR = """+++
name = "refactor"
context_hints = ["Rates live in rates.py"]
[extend]
dod = ["**Measured**: numbers before and after"]
+++
"""


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def test_types_are_listed_and_shown_as_their_layers_make_them(project: Project) -> None:
    write(project.config / "task-types", "refactor.md", REFACTOR)
    rows = {row["name"]: row for row in project.json("task-types", "--json")}
    assert rows["refactor"]["source_layer"] == "user"
    assert rows["refactor"]["dod"][-1] == "**Measured**: numbers before and after"
    assert len(rows["refactor"]["dod"]) == 6
    shown = project.run("task-types", "refactor").stdout
    assert "Rates live in rates.py" in shown
    assert "user · context_hints" in shown
    missing = project.run("task-types", "nothing", expect=2)
    assert "There is no task type nothing. There are api, bug" in missing.stderr


def test_a_file_that_cannot_be_used_is_named_with_its_fault(project: Project) -> None:
    folder = project.config / "task-types"
    write(folder, "bad.md", REFACTOR.replace("[extend]", 'dod = ["x"]\n[extend]'))
    write(folder, "odd.md", REFACTOR.replace("dod =", "policy ="))
    told = project.run("task-types").stderr
    assert "`dod` is both replaced and extended" in told
    assert "field `policy`" in told


def test_a_new_type_is_written_once_and_can_be_used(project: Project) -> None:
    written = project.run("task-types", "new", "migration").stderr
    path = project.config / "task-types" / "migration.md"
    assert str(path) in written
    assert "user" in project.run("task-types").stdout
    again = project.run("task-types", "new", "migration", expect=2)
    assert "exists already" in again.stderr
    assert "field `name` must be" in project.run("task-types", "new", "../x", expect=2).stderr
    assert "cockpit trust" in project.run("task-types", "new", "api2", "--project").stderr
    shared = project.root / ".cockpit" / "task-types" / "api2.md"
    assert shared.exists()

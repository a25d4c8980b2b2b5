"""``cockpit notes``, over sessions that teach something."""

from __future__ import annotations

import pytest
from cli_world import Project

pytestmark = pytest.mark.slow

TEACHES = """
[[turn]]
when = { not_called = ["run"] }
[[turn.call]]
name = "run"
arguments.argv = ["python3", "-Bc", "import room; assert room.room() == 144, 'wrong area'"]
arguments.reason = "look"

[[turn]]
when = { called = ["run"], not_called = ["request_context"] }
[[turn.call]]
name = "request_context"
arguments = { purpose = "fix", question = "what is the area?", scope = ["file:shapes.py"] }

[[turn]]
when = { called = ["request_context"], not_called = ["edit_file"] }
[[turn.call]]
name = "edit_file"
arguments = { path = "shapes.py", old = "c=1", new = "c=12" }
[[turn.call]]
name = "run"
arguments.argv = ["python3", "-Bc", "import room; assert room.room() == 144, 'wrong area'"]
arguments.reason = "look"

[[turn]]
when = { called = ["edit_file"] }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "fixed" }
"""


def test_a_session_teaches_and_the_user_keeps(project: Project) -> None:
    project.run("run", "Fix shapes.py", "--model", project.script(TEACHES), "--approve", "all")
    notes = project.json("notes", "--json")
    assert [(note["kind"], note["status"]) for note in notes] == [
        ("command", "proposed"),
        ("pitfall", "proposed"),
    ]
    pitfall = notes[1]
    assert "wrong area" in pitfall["text"]
    assert "until `shapes.py` changed" in pitfall["text"]
    kept = project.run("notes", "keep", pitfall["note_id"])
    assert kept.stderr.startswith("kept")
    project.run("notes", "keep", pitfall["note_id"], "Rooms are doubled")
    edited = project.json("notes", pitfall["note_id"], "--json")
    assert (edited["status"], edited["text"]) == ("kept", "Rooms are doubled")
    project.run("notes", "forget", notes[0]["note_id"], "--reason", "too long")
    assert "too long" not in project.run("notes").stdout
    assert len(project.json("notes", "--all", "--json")) == 2
    shown = project.run("notes", notes[0]["note_id"]).stdout
    assert "why it was forgotten  too long" in shown
    project.run("debug", "journal")
    # The same task again, from the same state: nothing that was judged is proposed anew.
    project.git("checkout", "--quiet", "shapes.py")
    project.run("run", "Fix shapes.py", "--model", project.script(TEACHES), "--approve", "all")
    again = {note["note_id"]: note for note in project.json("notes", "--all", "--json")}
    assert set(again) == {note["note_id"] for note in notes}
    assert again[pitfall["note_id"]]["seen"] == 2


def test_notes_of_the_user_and_errors(project: Project) -> None:
    assert "No notes yet" in project.run("notes").stderr
    first = project.json("notes", "add", "Rates are in cents", "--json")
    assert (first["kind"], first["status"]) == ("decision", "kept")
    assert first["source"] == "written by the user"
    again = project.run("notes", "add", "Rates are in cents", expect=1)
    assert "says the same already" in again.stderr
    other = project.json("notes", "add", "Amounts are in cents", "--json")
    project.run("notes", "keep", other["note_id"], "--with", first["note_id"])
    assert project.json("notes", other["note_id"], "--json")["seen"] == 2
    assert "There is no note n-x" in project.run("notes", "n-x", expect=2).stderr

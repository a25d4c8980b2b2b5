"""``cockpit sessions rewind``: lists, asks, goes back; refused to the holder of a token."""

from __future__ import annotations

from cli_world import Project

EDITS = """
[[turn]]
when = { not_called = ["request_context"] }
[[turn.call]]
name = "request_context"
arguments.purpose = "fix area"
arguments.question = "what does area do?"
arguments.scope = ["file:shapes.py"]

[[turn]]
when = { called = ["request_context"], not_called = ["edit_file"] }
[[turn.call]]
name = "edit_file"
arguments = { path = "shapes.py", old = "a * b * c", new = "a * b" }

[[turn]]
when = { called = ["edit_file"] }
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "done" }
"""


def test_a_shell_goes_back_to_a_wave_with_its_files(project: Project) -> None:
    file = project.root / "shapes.py"
    before = file.read_text("utf-8")
    words = ("--model", project.script(EDITS), "--approve", "all")
    project.run("run", "fix area", *words)
    after = file.read_text("utf-8")
    assert after != before
    back = ("sessions", "rewind", "last", "--wave", "1")
    # Without a terminal it lists, and asks for --yes.
    refused = project.run(*back, expect=2)
    assert "shapes.py  gets its earlier content" in refused.stdout
    assert "nothing was changed. Pass --yes." in refused.stderr
    assert "cannot go back to wave 9" in project.run(*back[:-1], "9", "--yes", expect=1).stderr
    # Whoever holds a token is not the user.
    issued = project.json("tokens", "issue", "--namespace", "ci", "--scope", "work.write", "--json")
    project.extra = {"COCKPIT_TOKEN": issued["token"]}
    held = project.run(*back, "--yes", expect=3)
    assert held.stdout == ""
    assert file.read_text("utf-8") == after
    project.extra = {}
    done = project.json(*back, "--yes", "--json")
    assert (done["files"], done["wave"]) == (["shapes.py"], 1)
    assert file.read_text("utf-8") == before
    assert done["session_id"] in project.run("sessions").stdout

"""``cockpit guards``: listed without running, shown, approved by the user alone, forgotten."""

from __future__ import annotations

import json

import pytest
from cli_world import Project

pytestmark = pytest.mark.slow

SOURCE = '''
import os
os.system("touch ran")

def check(call, session):
    """Refuse to deploy on Fridays.\x1b]0;evil\x07"""
    return "no"
'''


TOOL = """
from cockpit import tool

@tool(effects="reads")
def fridays() -> int:
    "Count the Fridays."
    return 4
"""


def test_a_guard_from_its_file_to_its_end(project: Project) -> None:
    built_in = project.run("guards").stdout
    assert "redundant_read" in built_in and "built in" in built_in
    assert "refuses  a request for text" in project.run("guards", "redundant_read").stdout
    folder = project.root / ".cockpit" / "guards"
    folder.mkdir(parents=True)
    (folder / "fridays.py").write_text(SOURCE)
    assert "project:fridays" in project.run("guards").stdout
    refused = project.run("trust", "fridays", expect=2)
    assert "No terminal to confirm on" in refused.stderr
    shown = project.run("trust", "fridays", "--yes")
    assert "│ def check(call, session):" in shown.stdout and "\x1b" not in shown.stdout
    rows = json.loads(project.run("guards", "--json").stdout)
    assert [row["state"] for row in rows if row["guard"] == "project:fridays"] == ["approved"]
    assert "Forgotten" in project.run("trust", "--revoke", "project:fridays").stderr
    assert "is not approved" in project.run("trust", "--revoke", "fridays", expect=2).stderr
    assert "No guard is called so either" in project.run("trust", "none", "--yes", expect=2).stderr
    assert "are for the files" in project.run("trust", "fridays", "--show", expect=2).stderr
    assert "Name it alone" in project.run("trust", "fridays", "./", expect=2).stderr
    tools = project.root / ".cockpit" / "tools"
    tools.mkdir()
    (tools / "days.py").write_text(TOOL)
    both = project.run("trust", "fridays", "--yes", expect=2)
    assert "Name the guard as project:fridays" in both.stderr and both.stdout == ""
    assert "There is no guard" in project.run("guards", "none", expect=2).stderr
    assert not (project.root / "ran").exists()

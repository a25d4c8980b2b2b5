"""``cockpit tools``: found without running, approved by the user, run, changed, forgotten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_world import Project

pytestmark = pytest.mark.slow

COUNT = '''
from pathlib import Path

from cockpit import tool


@tool(effects="reads", aliases=["wc"])
def count_words(path: str, minimum: int = 1) -> dict[str, int]:
    """Count the words of a file.\x1b]0;evil\x07"""
    print("counting")
    return {"words": len([w for w in Path(path).read_text().split() if len(w) >= minimum])}
'''


def write(project: Project, source: str = COUNT) -> Path:
    folder = project.root / ".cockpit" / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "words.py").write_text(source)
    return folder / "words.py"


def test_a_tool_from_its_file_to_its_result(project: Project) -> None:
    assert "There are no tools yet" in project.run("tools").stderr
    path = write(project)
    listed = project.run("tools").stdout
    assert "count_words  project: words.py  not approved  (path: str, minimum: int=1)" in listed
    refused = project.run("tools", "run", "count_words", "path=words.txt", expect=2)
    assert "does not run: not approved" in refused.stderr
    assert "No terminal to confirm on" in project.run("trust", "count_words", expect=2).stderr
    shown = project.run("trust", "count_words", "--yes")
    assert "│ def count_words" in shown.stdout and "\x1b" not in shown.stdout
    (project.root / "words.txt").write_text("one two three")
    done = project.run("tools", "run", "wc", "path=words.txt", "minimum=4")
    assert ('"words": 1' in done.stdout, done.stderr.strip()) == (True, "counting")
    wrong = project.run("tools", "run", "wc", "file=words.txt", expect=2)
    assert "has no argument 'file'" in wrong.stderr
    wrong = project.run("tools", "run", "wc", "path=words.txt", "minimum=x", expect=2)
    assert "minimum must be of type integer" in wrong.stderr
    path.write_text(COUNT + "# changed\n")
    (row,) = project.json("tools", "--json")
    assert (row["state"], row["from"]) == ("changed", "project")
    assert "changed since" in project.run("tools", "run", "wc", "path=words.txt", expect=2).stderr
    project.run("trust", "--revoke", "words.py")
    assert project.json("tools", "--json")[0]["state"] == "new"
    assert project.run("trust", "--revoke", "words.py", expect=2)
    rows = project.run("journal", "--json").stdout.splitlines()
    told = [json.loads(row)["detail"].get("status") for row in rows]
    assert {"approved", "forgotten"} <= set(told)


def test_only_the_user_approves(project: Project) -> None:
    write(project)
    issued = project.json(
        "tokens", "issue", "--namespace", "agent/x", "--scope", "work.write", "--json"
    )
    project.extra["COCKPIT_TOKEN"] = issued["token"]
    for words in ("trust count_words --yes", "tools run wc path=a", "trust --revoke wc"):
        project.run(*words.split(), expect=3)
    del project.extra["COCKPIT_TOKEN"]
    assert project.json("tools", "--json")[0]["state"] == "new"

"""A task is done only when its effect is there: on GitHub, or in the files, whatever the agent says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cockpit import Answer, OmniLoop

pytestmark = pytest.mark.slow

GH = """#!/bin/sh
case "$1 $2" in
  "issue create") %s ;;
  *) echo '[]' ;;
esac
"""
SCENARIO = """
[[turn]]
text = "I open it."
[[turn.call]]
name = "github"
arguments = { command = "gh issue create --title 'Add b' --body 'What b is for'" }
[[turn]]
when = { called = ["github"] }
text = "It is open."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Issue opened." }
"""


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "api"
    git(tmp_path, "init", "-q", "-b", "main", "api")
    git(root, "commit", "-q", "--allow-empty", "-m", "First")
    git(root, "remote", "add", "origin", "https://github.com/acme/api")
    return root


@pytest.mark.parametrize(
    ("gh", "decision", "status"),
    [
        ("echo https://github.com/acme/api/issues/7", "approve", "done"),
        ("echo 'create failed: no permission' >&2; exit 1", "approve", "blocked"),
        ("echo https://github.com/acme/api/issues/7", "reject", "blocked"),
    ],
)
async def test_an_issue_that_github_has_not_is_not_done(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gh: str, decision: str, status: str
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gh").write_text(GH % gh)
    (programs / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("HOME", str(tmp_path))
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO)
    loop = OmniLoop(
        project=root, model=f"script:{scenario}", approve=lambda request: Answer(decision, "no")
    )
    result = await loop.run("/create-issue b is missing", max_steps=4)
    assert result.status == status, result
    assert result.answer == "What b is for"


EDITS = """
[[turn]]
text = "I write."
[[turn.call]]
name = "write_file"
arguments = { path = "a.py", content = "a = 1\\n" }
[[turn.call]]
name = "write_file"
arguments = { path = "b.py", content = "b = 1\\n" }
[[turn]]
when = { called = ["write_file"] }
text = "It is there."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "Written." }
"""


@pytest.mark.parametrize(
    ("refused", "status", "end"),
    [
        ((), "done", "Written."),
        (("b.py",), "done", "failed: b.py."),
        (("a.py", "b.py"), "blocked", "failed: a.py, b.py."),
    ],
)
async def test_a_refused_edit_is_not_done(
    root: Path, tmp_path: Path, refused: tuple[str, ...], status: str, end: str
) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(EDITS)
    loop = OmniLoop(
        project=root,
        model=f"script:{scenario}",
        approve=lambda request: request.body["payload"]["path"] not in refused,
    )
    result = await loop.run("fix the numbers", max_steps=4)
    assert (result.status, result.summary.endswith(end)) == (status, True), result

"""A task is done only when its effect is there: on GitHub, or in the files, whatever the agent says."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_calc import git
from scenario import call, finish, turn

from cockpit import Answer, OmniLoop

pytestmark = pytest.mark.slow

GH = """#!/bin/sh
case "$1 $2" in
  "issue create") %s ;;
  *) echo '[]' ;;
esac
"""
OPENS = "gh issue create --title 'Add b' --body 'What b is for'"


@pytest.mark.parametrize(
    ("gh", "decision", "status"),
    [
        ("echo https://github.com/acme/api/issues/7", "approve", "done"),
        ("echo 'create failed: no permission' >&2; exit 1", "approve", "blocked"),
        ("echo https://github.com/acme/api/issues/7", "reject", "blocked"),
    ],
)
async def test_an_issue_that_github_has_not_is_not_done(
    project: Path, tmp_path: Path, script, monkeypatch, gh: str, decision: str, status: str
) -> None:
    git(project, "remote", "add", "origin", "https://github.com/acme/api")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gh").write_text(GH % gh)
    (programs / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("HOME", str(tmp_path))
    model = script(turn("github", command=OPENS) + finish('called = ["github"]'))
    loop = OmniLoop(project=project, model=model, approve=lambda request: Answer(decision, "no"))
    result = await loop.run("/create-issue b is missing", max_steps=4)
    assert result.status == status, result
    assert result.answer == "What b is for"


@pytest.mark.parametrize(
    ("refused", "status", "end"),
    [(("b.py",), "done", "failed: b.py."), (("a.py", "b.py"), "blocked", "failed: a.py, b.py.")],
)
async def test_a_refused_edit_is_not_done(project, script, refused, status, end):
    writes = turn("write_file", path="a.py", content="a = 1\n") + call(
        "write_file", path="b.py", content="b = 1\n"
    )
    loop = OmniLoop(
        project=project,
        model=script(writes + finish('called = ["write_file"]')),
        approve=lambda request: request.body["payload"]["path"] not in refused,
    )
    result = await loop.run("fix the numbers", max_steps=4)
    assert (result.status, result.summary.endswith(end)) == (status, True), result

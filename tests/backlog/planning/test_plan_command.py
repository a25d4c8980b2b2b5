"""``cockpit plan`` as a person runs it."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
from plan_world import Project

pytestmark = pytest.mark.slow

TEXT = "# Accounts\n\n- [ ] Seed the jitter\n- [ ] Refuse expired tokens (after #1)\n"


def test_from_file_to_backlog(project: Project) -> None:
    (project.root / "plan.md").write_text(TEXT, encoding="utf-8")
    told = project.run("plan", "plan.md")
    assert "- [ ] #2 Refuse expired tokens [feature] (after #1)" in told.stdout
    assert "Nothing was added yet" in told.stderr
    [waiting] = json.loads(project.run("proposals", "--json").stdout)
    assert waiting["title"] == "Plan: Accounts (1 epic, 1 story, 2 tasks)"
    shown = project.run("proposals", waiting["proposal_id"]).stdout
    assert "as it will be written:\n  │ # Accounts" in shown
    project.run("proposals", "approve", waiting["proposal_id"])
    listed = json.loads(project.run("tasks", "--json").stdout)
    assert [task["title"] for task in listed] == [
        "Seed the jitter",
        "Refuse expired tokens",
    ]
    refused = project.run("plan", "plan.md", expect=3)
    assert "in the backlog already" in refused.stderr
    assert "--again" in refused.stderr


def test_what_cannot_be_read(project: Project) -> None:
    assert "nosuch.md cannot be read" in project.run("plan", "nosuch.md", expect=2).stderr
    (project.root / "bad.md").write_bytes(b"- [ ] \xff\n")
    assert "not UTF-8" in project.run("plan", "bad.md", expect=2).stderr
    assert "not UTF-8" in project.run("plan", "--", "- [ ] \udcff", expect=2).stderr
    project.run("plan", "-", stdin=TEXT)
    assert "no proposal p-abcdef12" in project.run("plan", "p-abcdef12", expect=2).stderr
    wrong = project.run("plan", "-", "--check", "--approve", "all", expect=2, stdin=TEXT)
    assert "--check proposes nothing" in wrong.stderr


def editor(folder: Path, before: str, after: str) -> str:
    """A program that changes one word of a file, as a person would in an editor."""
    path = folder / "editor"
    path.write_text(f"#!/bin/sh\nsed -i 's/{before}/{after}/' \"$1\"\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_editing_before_and_after_it_is_proposed(project: Project) -> None:
    first = editor(project.root.parent, "Seed", "Sow")
    project.run("plan", "-", "--edit", stdin=TEXT, EDITOR=first)
    [waiting] = json.loads(project.run("proposals", "--json").stdout)
    second = editor(project.root.parent, "expired", "stale")
    told = project.run("plan", waiting["proposal_id"], "--edit", EDITOR=second)
    assert "Sow the jitter" in told.stdout
    assert "Refuse stale tokens" in told.stdout
    [revision] = json.loads(project.run("proposals", "--json").stdout)
    assert revision["revises"] == waiting["proposal_id"]
    project.run("plan", waiting["proposal_id"], "--edit", expect=3, EDITOR=second)


def test_an_edit_that_is_refused_is_not_lost(project: Project) -> None:
    project.run("plan", "-", stdin=TEXT)
    [waiting] = json.loads(project.run("proposals", "--json").stdout)
    wrong = editor(project.root.parent, "after #1", "after #7")
    told = project.run("plan", waiting["proposal_id"], "--edit", expect=2, EDITOR=wrong)
    assert "there is no task #7" in told.stderr
    kept = re.search(r"Your text is saved in (\S+\.md)\.", told.stderr)
    assert kept is not None
    assert Path(kept[1]).read_text(encoding="utf-8") == TEXT.replace("#1", "#7")
    project.run("proposals", "reject", waiting["proposal_id"])
    late = project.run("plan", waiting["proposal_id"], "--edit", expect=3, EDITOR="false")
    assert "was rejected already" in late.stderr


def test_an_agent_with_a_token_cannot_approve_by_an_option(project: Project) -> None:
    project.run("tasks", "add", "Something")
    issued = project.run(
        "tokens", "issue", "--namespace", "agent/s-1", "--scope", "work.write", "--json"
    )
    secret = json.loads(issued.stdout)["token"]
    told = project.run("plan", "-", "--approve", "all", "--json", stdin=TEXT, COCKPIT_TOKEN=secret)
    assert json.loads(told.stdout)["status"] == "pending"
    identity = json.loads(told.stdout)["proposal_id"]
    refused = project.run("proposals", "approve", identity, expect=3, COCKPIT_TOKEN=secret)
    assert "only the user may" in refused.stderr
    edited = project.run("plan", identity, "--edit", expect=3, COCKPIT_TOKEN=secret, EDITOR="true")
    assert "only the user may" in edited.stderr


def test_a_look_leaves_nothing_behind_and_all_at_once_is_approved(project: Project) -> None:
    told = project.run("plan", "-", "--check", "--json", stdin=TEXT)
    titles = [task["title"] for task in json.loads(told.stdout)["tasks"]]
    assert titles == ["Seed the jitter", "Refuse expired tokens"]
    assert list(project.root.iterdir()) == []
    told = project.run("plan", "-", "--approve", "all", "--json", stdin=TEXT)
    body = json.loads(told.stdout)
    assert body["status"] == "approved"
    taken = {"epics": ["E-1"], "stories": ["S-1"], "tasks": ["T-1", "T-2"], "dependencies": 1}
    assert body["taken"] == taken

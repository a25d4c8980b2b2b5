"""``cockpit proposals``: decided from another process, once, as it was shown."""

from __future__ import annotations

from typing import Any

import pytest
from cli_world import Project

pytestmark = pytest.mark.slow

REVIEW = "review main..feature"


def front(project: Project) -> dict[str, Any]:
    found: list[dict[str, Any]] = project.json("proposals", "list", "--json")
    assert len(found) == 1
    return found[0]


def test_it_is_decided_once_as_it_was_shown(project: Project, watched: Any) -> None:
    """Discussed first, which ends the revision and passes the words on."""
    run = watched("run", REVIEW, "--model", project.script())
    run.until("session.waiting")
    waiting = front(project)["proposal_id"]
    project.run("proposals", "discuss", waiting, "--words", "only the room, please")
    said = run.until("message.completed")
    while said["detail"]["role"] != "person":
        said = run.until("message.completed")
    assert said["detail"]["text"] == "only the room, please"
    assert project.json("proposals", "show", waiting, "--json")["status"] == "discussed"
    run.until("session.waiting")
    waiting = front(project)["proposal_id"]
    for verb in ("approve", "reject", "discuss"):
        done = project.run("proposals", verb, waiting, "--shown", "0" * 64, expect=3)
        assert "Nothing was decided" in done.stderr
    done = project.run("proposals", "approve", waiting, "--item", "file:/etc/passwd", expect=3)
    assert "Narrowing can only remove items" in done.stderr
    assert front(project)["status"] == "pending"
    digest = front(project)["shown_digest"]
    words = ("--shown", digest, "--item", "file:room.py")
    done = project.run("proposals", "approve", waiting, *words)
    assert "narrowed to file:room.py" in done.stderr
    assert project.json("proposals", "show", waiting, "--json")["narrowed"] == ["file:room.py"]
    fetched = run.until("context.fetched")
    while [item["item"] for item in fetched["detail"]["items"]] != ["file:room.py"]:
        fetched = run.until("context.fetched")
    run.until("session.waiting")
    waiting = front(project)
    action = waiting["proposal_id"]
    shown = project.run("proposals", "show", action)
    assert waiting["kind"] == "action" and "+# Notes" in shown.stdout
    assert f"--shown {waiting['shown_digest'][:8]}" in shown.stderr
    project.run("proposals", "reject", action, "--reason", "no notes")
    done = project.run("proposals", "approve", action, expect=3)
    assert "was already rejected by person" in done.stderr
    assert project.json("proposals", "show", action, "--json")["reason"] == "no notes"
    assert run.end() == 0  # the script finishes as done all the same: its word counts
    assert not (project.root / "notes.md").exists()
    done = project.run("proposals", "list")
    assert (done.stdout, done.stderr) == ("", "No proposal waits for a decision.\n")

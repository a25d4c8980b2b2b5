"""``cockpit proposals``: decided from another process, once, as it was shown."""

from __future__ import annotations

from typing import Any

import pytest
from cli_world import Project

pytestmark = pytest.mark.slow

REVIEW = "review main..feature"


def front(project: Project) -> dict[str, Any]:
    found: list[dict[str, Any]] = project.json("proposals", "--json")
    assert len(found) == 1
    return found[0]


def test_it_is_decided_once_as_it_was_shown(project: Project, watched: Any) -> None:
    run = watched("run", REVIEW, "--model", project.script())
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
    assert project.json("proposals", waiting, "--json")["narrowed"] == ["file:room.py"]
    fetched = run.until("context.fetched")
    while [item["item"] for item in fetched["detail"]["items"]] != ["file:room.py"]:
        fetched = run.until("context.fetched")
    run.until("session.waiting")
    waiting = front(project)
    action = waiting["proposal_id"]
    shown = project.run("proposals", action)
    assert waiting["kind"] == "action" and "+# Notes" in shown.stdout
    assert f"--shown {waiting['shown_digest'][:8]}" in shown.stderr
    # Discussing ends the revision and passes the words on.
    project.run("proposals", "discuss", action, "--words", "no notes, please")
    done = project.run("proposals", "approve", action, expect=3)
    assert "was already discussed by person" in done.stderr
    said = run.until("message.completed")["detail"]
    while (said["role"], said["text"]) != ("person", "no notes, please"):
        said = run.until("message.completed")["detail"]
    assert run.end() == 0  # the script finishes as done all the same: its word counts
    assert not (project.root / "notes.md").exists()
    done = project.run("proposals")
    assert (done.stdout, done.stderr) == ("", "No proposal waits for a decision.\n")

"""The line about skills in the text of a session's start: for a task in progress, and never at its cost."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.core.project_paths import locate_project
from cockpit.core.skills import skill_layers
from cockpit.hook import resume_context
from cockpit.hook.event_payload import Event
from cockpit.hook.project_lookup import Checkout
from cockpit.hook.relevant_skills import name_relevant_skills


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(skill_layers, "ENABLED", True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "config"))
    place = locate_project(tmp_path)
    place.prepare()
    return SimpleNamespace(home=str(tmp_path), state=str(place.state))


def test_the_skills_of_a_task_are_named(place: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    line = name_relevant_skills(place, "Fix the crash and squash the commits", "")
    assert line == (
        "Skills for this task: git; perhaps debugging (get_skill, or `cockpit skills show git`)."
    )
    assert name_relevant_skills(place, "hi there", "") == ""
    monkeypatch.setenv("COCKPIT_SKILLS_MOST", "0")
    assert name_relevant_skills(place, "Fix the crash", "") == ""


def test_a_failure_costs_the_line_alone(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise OSError("disk")

    monkeypatch.setattr("cockpit.hook.relevant_skills.name_relevant_skills", fail)
    task = {"title": "Fix it", "context_summary": "", "acceptance_criteria": ""}
    event = Event("claude", {"hook_event_name": "SessionStart", "session_id": "s"})
    assert resume_context._skills_for(task, place, event) == ""

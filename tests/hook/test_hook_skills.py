"""The line about skills in the text of a session's start: for a task in progress, and never at its cost."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.core.project_paths import locate_project
from cockpit.core.skills import skill_layers
from cockpit.hook.resume_context import name_relevant_skills


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(skill_layers, "ENABLED", True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "config"))
    place = locate_project(tmp_path)
    place.prepare()
    return SimpleNamespace(home=str(tmp_path), state=str(place.state))


def test_the_skills_of_a_task_are_named(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    line = name_relevant_skills(
        place, "Squash the last commits of the branch, and fix the crash", ""
    )
    assert line == (
        "Skills for this task: git; perhaps debugging (get_skill, or `cockpit skills git`)."
    )
    assert name_relevant_skills(place, "hi there", "") == ""
    monkeypatch.setenv("COCKPIT_SKILLS_MOST", "0")
    assert name_relevant_skills(place, "Fix the crash", "") == ""


def test_a_line_follows_the_skills_that_there_are(place: Any, tmp_path: Path) -> None:
    def name() -> str:
        return name_relevant_skills(place, "Calibrate the zeppelin altimeter", "")

    assert name() == name() == ""
    skill = tmp_path / "config" / "skills" / "zeppelin" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    text = "---\nname: zeppelin\ndescription: Calibrate a zeppelin altimeter\n---\nDo it.\n"
    skill.write_text(text)
    assert "zeppelin" in name()
    skill.write_text(text.replace("a zeppelin altimeter", "the periscope of a boat"))
    assert "; perhaps" not in name()
    skill.unlink()
    assert name() == ""

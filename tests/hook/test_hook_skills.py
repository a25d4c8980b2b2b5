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


def _write_skill(folder: Path, name: str, words: str) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {name}\ndescription: {words}\n---\nDo it.\n")
    return path


def test_a_line_is_kept_until_a_skill_changes(
    place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second start reads no skill: that takes five times as long as the rest (``bench/hook.py``)."""
    task = "Calibrate the zeppelin altimeter"
    reads: list[object] = []
    load = skill_layers.load_skills
    monkeypatch.setattr(
        skill_layers, "load_skills", lambda *places: reads.append(places) or load(*places)
    )

    def name() -> str:
        return name_relevant_skills(place, task, "")

    assert (name(), name(), len(reads)) == ("", "", 1)
    skill = _write_skill(tmp_path / "config/skills", "zeppelin", "Calibrate a zeppelin altimeter")
    assert "zeppelin" in name()
    assert "zeppelin" in name()
    assert len(reads) == 2
    skill.write_text(skill.read_text().replace("zeppelin altimeter", "submarine's periscope"))
    name()
    assert len(reads) == 3
    skill.unlink()
    assert (name(), len(reads)) == ("", 4)
    assert name_relevant_skills(place, "Squash the commits", "") != ""
    (Path(place.state) / "trust.json").write_text("{}")
    name()
    assert len(reads) == 6
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "other"))
    name()
    assert len(reads) == 7


def test_a_damaged_file_of_kept_lines_is_written_again(place: Any) -> None:
    path = Path(place.state) / "skill_lines.json"
    line = name_relevant_skills(place, "Squash the commits", "")
    for damage in ("", "[", "[]", '{"a": 1}', path.read_text().replace('"folders"', '"other"')):
        path.write_text(damage)
        assert name_relevant_skills(place, "Squash the commits", "") == line
    assert line
    assert path.stat().st_mode & 0o777 == 0o600
    for number in range(25):
        name_relevant_skills(place, f"Task {number}", "")
    assert path.read_text().count('"marks"') == 20

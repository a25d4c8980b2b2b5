"""The registry of projects: written by many at once, killed at any moment, forgotten and recalled."""

from __future__ import annotations

from pathlib import Path

from loop.all_projects.projects_world import begin, make_project, open_store

from cockpit.core.project.known_projects import find_known, forget, list_known, recall
from cockpit.core.project_paths import PROJECT_FILE
from cockpit.core.state_folder import PROJECTS


def names() -> list[str]:
    return [project.name for project in list_known()]


def test_a_project_is_known_from_its_first_use(user_state, tmp_path):
    assert list_known() == []
    make_project(tmp_path / "b")
    make_project(tmp_path / "A")
    assert names() == ["A", "b"]
    (user_state / PROJECTS / "stray").mkdir()
    (user_state / PROJECTS / "file").write_text("")
    assert names() == ["A", "b"], "a folder without a record is not a project"


def test_forgotten_until_it_is_used_again(user_state, tmp_path):
    place = make_project(tmp_path / "api")
    forget(find_known("api"))
    assert names() == []
    assert [each.name for each in list_known(forgotten=True)] == ["api"]
    forget(find_known(str(place.home)))
    assert names() == [], "twice is once"
    recall(place.state)
    assert names() == ["api"]
    forget(find_known(place.state.name))
    with open_store(place) as store:
        begin(store, place.home)
    assert names() == ["api"], "it was used"


def test_hostile_records_are_no_projects(user_state, tmp_path):
    place = make_project(tmp_path / "api")
    for text in ("", "[]", '{"identity": 1}', '{"identity": "/x", "home": null}', "\x00" * 70_000):
        folder = user_state / PROJECTS / "other"
        folder.mkdir(exist_ok=True)
        (folder / PROJECT_FILE).write_text(text)
        assert names() == ["api"]
    (user_state / PROJECTS / "other" / "cockpit.db").write_bytes(b"")
    (lost,) = (project for project in list_known() if project.name != "api")
    assert (lost.name, lost.exists) == ("other", True)
    assert PROJECT_FILE in lost.problem, "a store is there: the row says whose it may be"
    forget(lost)
    assert names() == ["api"]
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / PROJECT_FILE).write_text((place.state / PROJECT_FILE).read_text())
    Path(user_state / PROJECTS / "link").symlink_to(outside)
    assert names() == ["api"], "no link is followed"

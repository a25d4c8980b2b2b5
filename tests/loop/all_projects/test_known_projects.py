"""The registry of projects: written by many at once, killed at any moment, forgotten and recalled."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from loop.all_projects.projects_world import begin, make_project, open_store

from cockpit.core.errors import NotFound
from cockpit.core.project.known_projects import find_known, forget, list_known, recall
from cockpit.core.project_paths import PROJECT_FILE, read_project_record
from cockpit.core.state_folder import PROJECTS

REGISTER = """
import sys
from pathlib import Path
from cockpit.core.project_paths import ProjectPaths, ProjectRecord, write_project_record
folder = Path(sys.argv[1])
place = ProjectPaths(root=folder, home=folder, git=True)
print("ready", flush=True)
while True:
    place.prepare()
    write_project_record(place.state, ProjectRecord(place.identity, place.home, True))
"""


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


def test_a_name_of_several_projects_asks_for_a_path(user_state, tmp_path):
    for folder in ("one", "two"):
        make_project(tmp_path / folder / "api")
    with pytest.raises(NotFound, match="Several projects"):
        find_known("api")
    assert find_known(str(tmp_path / "two" / "api")).home == tmp_path / "two" / "api"
    with pytest.raises(NotFound, match="knows no project"):
        find_known("other")


@pytest.mark.slow
def test_killed_while_it_is_written_the_registry_stays_whole(user_state, tmp_path):
    places = [make_project(tmp_path / name) for name in ("a", "b")]
    for _ in range(4):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", REGISTER, str(place.home)], stdout=subprocess.PIPE, text=True
            )
            for place in places
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for _ in range(50):
            assert names() == ["a", "b"]
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            writer.stdout.close()
        for place in places:
            record = read_project_record(place.state)
            assert record is not None
            assert record.home == place.home
            json.loads((place.state / PROJECT_FILE).read_text())
    assert names() == ["a", "b"]


def test_listing_opens_no_store(user_state, tmp_path):
    place = make_project(tmp_path / "api")
    with open_store(place):
        pass
    before = {path: path.stat().st_mtime_ns for path in place.state.rglob("*")}
    assert names() == ["api"]
    assert {path: path.stat().st_mtime_ns for path in place.state.rglob("*")} == before


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

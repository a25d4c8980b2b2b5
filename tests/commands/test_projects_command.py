"""`cockpit projects`, and what waits in all of them, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_world import Project
from loop.all_projects.projects_world import ask, begin, make_project, open_store

from cockpit.core.state_folder import VARIABLE

pytestmark = pytest.mark.slow


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A user with two projects and a folder that is none of them."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "user-state"))
    for name in ("api", "web"):
        place = make_project(tmp_path / name)
        with open_store(place) as store:
            ask(store, begin(store, place.home, branch="fix"), "p-same", title=f"in {name}")
    here = tmp_path / "elsewhere"
    here.mkdir()
    return Project(here, tmp_path / "config", {VARIABLE: str(tmp_path / "user-state")})


def test_projects_are_listed_forgotten_and_added(user, tmp_path):
    listed = user.json("projects", "--json")
    assert [(row["project"], row["branch"], row["state"], row["waiting"]) for row in listed] == [
        ("api", "main", "open", 1),
        ("web", "main", "open", 1),
    ]
    assert Path(listed[0]["store"]).exists()
    user.run("projects", "add", "--remove", "api")
    assert [row["project"] for row in user.json("projects", "--json")] == ["web"]
    user.run("projects", "add", str(tmp_path / "api"))
    table = user.run("projects").stdout
    assert "api" in table
    assert "web" in table
    assert "knows no project" in user.run("projects", "add", "--remove", "none", expect=2).stderr
    assert "not a folder" in user.run("projects", "add", "/none", expect=2).stderr


def test_what_waits_in_all_projects(user, tmp_path):
    rows = user.json("proposals", "--all-projects", "--json")
    assert sorted((row["project"], row["branch"], row["title"]) for row in rows) == [
        ("api", "fix", "in api"),
        ("web", "fix", "in web"),
    ]
    assert {row["proposal_id"] for row in rows} == {"p-same"}
    text = user.run("proposals", "--all-projects").stdout
    assert "in api" in text
    user.run("proposals", "--all-projects", "--all", expect=2)
    for path in (tmp_path / "user-state" / "projects").glob("web-*/cockpit.db"):
        for each in path.parent.glob("cockpit.db-*"):
            each.unlink()
        path.write_bytes(b"none" * 999)
    done = user.run("proposals", "--all-projects", "--json")
    assert [row["project"] for row in json.loads(done.stdout)] == ["api"]
    assert "web was left out, it is broken" in done.stderr


@pytest.mark.parametrize(
    "words",
    [("projects",), ("proposals", "--all-projects"), ("projects", "add", "--remove", "api")],
    ids=" ".join,
)
def test_a_token_is_of_one_project(user, words):
    user.extra["COCKPIT_TOKEN"] = "cpt_none"
    assert "A token is of one project" in user.run(*words, expect=3).stderr


def test_the_screen_needs_a_terminal_and_no_other_option(user):
    assert "needs a terminal" in user.run("--all", expect=2).stderr
    assert "no other option" in user.run("--all", "-c", expect=2).stderr
    assert "Write them after" in user.run("--all", "tasks", expect=2).stderr
    assert list(user.root.iterdir()) == []

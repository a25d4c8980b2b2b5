"""``cockpit stats`` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chains.measures.chain_days import three_days
from commands.cli_world import Project

from cockpit.core.clock import CountingIds, FixedClock
from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "api"
    root.mkdir()
    place = locate_project(root)
    place.prepare()
    clock = FixedClock()
    with Store.open(place.database, clock, CountingIds()) as store:
        three_days(store, clock)
    return Project(root, tmp_path / "config")


def test_as_json_in_a_time(project: Project) -> None:
    found = project.json(
        "stats", "--since", "2026-01-02", "--before", "2026-01-03T00:00+00:00", "--json"
    )
    assert found["workers"] == 1
    by_name = {each["name"]: each for each in found["measures"]}
    assert by_name["Token limit used per worker"]["value"] == 0.7
    tasks = by_name["Tasks per worker"]
    assert (tasks["value"], tasks["each"], tasks["met"]) == (7.0, [7.0], False)
    assert found["since"] == "2026-01-02T00:00:00.000000Z"


def test_before_and_after(project: Project) -> None:
    told = project.run("stats", "--after", "2026-01-02")
    assert "BEFORE 2026-01-02" in told.stdout
    assert "+50 points" in told.stdout
    assert "better" in told.stdout
    assert "3 workers ended before, 2 after" in told.stderr
    gap = project.json("stats", "--before", "2026-01-02", "--after", "2026-01-03", "--json")
    assert (gap["before"]["workers"], gap["after"]["workers"]) == (3, 1)


def test_times_that_are_none(project: Project) -> None:
    assert (
        "Write for example 7d, 2026-01-05"
        in project.run("stats", "--since", "yesterday", expect=2).stderr
    )
    backwards = ("--since", "2026-01-03", "--before", "2026-01-02")
    assert "not earlier" in project.run("stats", *backwards, expect=2).stderr
    without = ("--since", "2026-01-03", "--after", "2026-01-02")
    assert "not earlier than --after" in project.run("stats", *without, expect=2).stderr
    both = project.run("stats", "--before", "2026-01-03", "--after", "2026-01-02")
    assert "counts in both spans" in both.stderr


def test_a_project_without_chains(tmp_path: Path) -> None:
    root = tmp_path / "new"
    root.mkdir()
    told = Project(root, tmp_path / "config").run("stats", "--json")
    assert json.loads(told.stdout)["workers"] == 0
    (reviews,) = [m for m in json.loads(told.stdout)["measures"] if m["name"] == "Reviews failed"]
    assert (reviews["value"], reviews["detail"]) == (None, "0 of 0")
    assert list(root.iterdir()) == []

"""Pins by hand from the command line: kept from the next wave on, let go again, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from cli_world import Project

pytestmark = pytest.mark.slow

RUN = ("run", "review main..feature", "--approve", "all")


def held(project: Project, wave: int) -> dict[str, Any]:
    """Whether each fact of a wave's packet is pinned, by its id."""
    whole = project.json("packet", str(wave), "--json")
    return {entry[0]: entry[3] for band in whole["bands"] for entry in band["entries"]}


def test_a_pin_holds_from_the_next_wave_until_it_is_taken_back(project: Project) -> None:
    project.run(*RUN, "--model", project.script(), "--max-waves", "2", expect=1)
    made = project.json("packet", "pin", "file:room.py", "--json")
    assert (made["source_ref"], made["ordinal"], made["pinned"]) == ("file:room.py", 3, True)
    before = held(project, 2)
    assert before[made["fact_id"]] == 0
    assert "file:shapes.py is pinned from wave 3 on." in (
        project.run("packet", "pin", "file:shapes.py").stdout
    )
    again = project.run("packet", "pin", "file:shapes.py", "--off").stdout
    assert "is no longer pinned" in again
    project.run("run", "--continue", "--max-waves", "9", "--approve", "all")
    after = held(project, 3)
    assert after[made["fact_id"]] == 1
    assert sum(after.values()) == sum(before.values()) + 1
    assert held(project, 2) == before
    assert all(one["ok"] for one in project.json("debug", "packet", "verify", "--json"))
    rows = project.run("journal", "-n", "999", "--json").stdout
    assert rows.count('"fact.pinned"') == 3


def test_what_cannot_be_pinned_or_let_go_is_refused_and_changes_nothing(project: Project) -> None:
    project.run(*RUN, "--model", project.script())
    unknown = project.run("packet", "pin", "file:nowhere.py", expect=2).stderr
    assert "no fact file:nowhere.py" in unknown and "packet explain" in unknown
    explained = project.json("debug", "packet", "explain", "--json")
    stated = next(fact for fact in explained if fact["band"] == "identity")
    assert (
        "stays pinned"
        in project.run("packet", "pin", stated["source_ref"], "--off", expect=1).stderr
    )
    assert project.json("debug", "packet", "explain", "--json") == explained

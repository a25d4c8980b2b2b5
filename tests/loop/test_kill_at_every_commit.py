"""SIGKILL after any commit of a session: it completes, and nothing happens twice."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from loop.conftest import FIX
from scenario import finish, turn

pytestmark = [pytest.mark.slow, pytest.mark.search]

DRIVER = Path(__file__).with_name("kill_driver.py")
RETURN = (
    turn("edit_file", path="calc.py", old="a - b", new="a + b")
    + turn("resume_action", 'facts = ["file:file:calc.py"]', call="1.1")
    + finish('contains = ["calc.py is written"]')
)
SHIFT = (
    turn(
        "propose_profile_change",
        base_profile_version=1,
        effective_waves=1,
        reason="a storm",
        rules=[{"rule_id": "search", "priority_weight": 3.0}],
    )
    + turn("write_file", "wave = 2", path="a.md", content="a")
    + finish("wave_from = 3")
)
LEAST, MOST = 14, 60
"""Commits that each story has, and more than any has. A story ends with the first run that survives."""


def check(world: dict[str, Any]) -> None:
    assert world["status"] == "completed"
    assert world["chain"]
    assert world["doubles"] == 0
    assert set(world["waves"]) == {"completed"}
    if world["story"] == "commit":
        # A command that was cut off cannot be probed: it is left, the agent is told and plans anew.
        assert world["log"].count("Add adds") == 1
        assert "a + b" in world["file"]
    elif world["story"] == "return":
        assert world["returns"] == ["held", "resumed"]
        assert world["phases"] == ["confirmed", "failed_terminal"]
        assert "a + b" in world["file"]
    else:
        assert world["changes"] == [["approved", 1]]
        assert (world["versions"], world["is_back"]) == ([1, 2, 3], True)
        assert world["profiles"] == [1, 2, 3]


def test_a_session_killed_after_any_commit_completes_once(project, tmp_path):
    dice = random.Random("commits")
    stories = {"commit": FIX, "return": RETURN, "shift": SHIFT}
    for name, text in stories.items():
        (tmp_path / f"{name}.toml").write_text(text)
    numbers = range(1, min(MOST, LEAST + examples(1)))
    plan = {
        name: {
            "words": "implement add",
            "commits": sorted(dice.sample(numbers, min(examples(1), len(numbers)))),
        }
        for name in stories
    }
    (tmp_path / "stories.json").write_text(json.dumps(plan))
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(tmp_path)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    worlds = [json.loads(line) for line in done.stdout.splitlines()]
    killed = [world for world in worlds if world["died"]]
    assert {world["story"] for world in killed} == set(stories)
    assert {world["died"] for world in killed} == {-signal.SIGKILL}, done.stderr
    for world in worlds:
        check(world)

"""SIGKILL after every fourth commit of a session that goes back: the action is kept once, and done once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DRIVER = Path(__file__).parents[1] / "kill_driver.py"
SCENARIO = """
[[turn]]
text = "I fix it."
[[turn.call]]
name = "edit_file"
arguments.path = "calc.py"
arguments.old = "a - b"
arguments.new = "a + b"

[[turn]]
when = { facts = ["file:file:calc.py"] }
[[turn.call]]
name = "resume_action"
arguments.call = "1.1"

[[turn]]
when = { contains = ["calc.py is written"] }
[[turn.call]]
name = "finish"
arguments.status = "done"
arguments.summary = "done"
"""


def test_a_session_that_goes_back_is_killed_at_any_commit(
    project: Path, tmp_path: Path, script: Callable[[str], str]
) -> None:
    words = (str(DRIVER), str(project), str(tmp_path / "user"), script(SCENARIO), "2", "60", "4")
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    worlds = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(worlds) > 2
    assert worlds[-1]["died"] == 0
    for world in worlds:
        assert world["died"] in (-signal.SIGKILL, 0), (world, done.stderr)
        assert world["resumed"] == 0, (world, done.stderr)
        assert world["status"] == "completed", world
        assert world["chain"], world
        assert world["doubles"] == 0, world
        assert world["returns"] == ["action.held", "action.resumed"], world
        assert sorted(world["phases"]) == ["confirmed", "failed_terminal"], world
        assert "a + b" in world["file"], world

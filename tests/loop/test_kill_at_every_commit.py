"""SIGKILL after every single commit of a session: it completes, and nothing happened twice."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DRIVER = Path(__file__).with_name("kill_driver.py")
PYTHON = re.compile(r'\["python3"[^]]*\]')
MOST = 120
"""More commits than a session of this story has: the driver stops at the first run that survives."""


@pytest.mark.parametrize("half", [1, 2])
def test_a_session_killed_after_any_commit_completes_once(project, tmp_path, fix, half):
    # Its command is run once or twice for every commit, so it is one that starts no interpreter.
    scenario = Path(fix.removeprefix("script:"))
    scenario.write_text(PYTHON.sub('["grep", "-n", "a + b", "calc.py"]', scenario.read_text()))
    done = subprocess.run(
        [
            sys.executable,
            str(DRIVER),
            str(project),
            str(tmp_path / "user"),
            fix,
            str(half),
            str(MOST),
            "2",
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    worlds = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(worlds) >= 12
    assert worlds[-1]["died"] == 0
    for world in worlds[:-1]:
        assert world["died"] == -signal.SIGKILL, (world, done.stderr)
    for world in worlds:
        assert world["resumed"] == 0, (world, done.stderr)
        assert world["status"] == "completed", world
        assert world["chain"], world
        assert world["doubles"] == 0, world
        assert set(world["waves"]) == {"completed"}, world
        # A command that was cut off cannot be probed: it is left, the agent is told and plans anew.
        assert world["log"].count("Add adds") == 1, world
        assert "a + b" in world["file"], world

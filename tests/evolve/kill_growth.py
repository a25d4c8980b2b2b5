"""Kill a process of a growth at some of its moments, and see that the next one ends it once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from examples import examples

DRIVER = Path(__file__).with_name("growth_kill_driver.py")


def kill_at_moments(
    project: Path, scenario: str, moments: list[str], *, own_session: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield some moments, all of them in a long search, each with the world after the continuation."""
    chosen = random.Random(2).sample(moments, min(len(moments), examples(1)))
    file = project.parent / "scenario.toml"
    file.write_text(scenario)
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(project), str(project.parent / "user"), f"script:{file}", *chosen],
        env={**os.environ, "COCKPIT_TEST_GROWTH": "evolve" if own_session else "task"},
        capture_output=True,
        text=True,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    worlds = [json.loads(line) for line in done.stdout.splitlines()]
    assert [world["moment"] for world in worlds] == chosen
    for world in worlds:
        assert world["died"] == -signal.SIGKILL, (world, done.stderr)
        assert world["log"].count("Adopt the tool parse_pcab") == 1, (world, done.stderr)
        assert world["chain"], world
        yield world["moment"], world

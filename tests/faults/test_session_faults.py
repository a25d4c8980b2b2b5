"""A session that is killed, or whose calls fail, at a few of its moments; ``make chaos`` takes many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CHAOS = Path(__file__).with_name("chaos.py")


@pytest.mark.parametrize(
    ("kind", "trials"),
    [("kill", 6), ("FULL", 3), ("BUSY", 3), ("IOERR", 3), ("ENOSPC", 3), ("EACCES", 3)],
)
def test_nothing_is_lost_doubled_or_stranded(kind: str, trials: int) -> None:
    played = subprocess.run(
        [sys.executable, str(CHAOS), kind, "--trials", str(trials)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert played.stdout.splitlines()[-1].split()[:6] == [
        "session:", kind, str(trials), "0", "0", "0",
    ]  # fmt: skip

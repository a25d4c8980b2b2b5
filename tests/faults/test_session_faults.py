"""Work that is killed, or whose calls fail, at a few of its moments; ``make chaos`` takes many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from examples import examples

pytestmark = [pytest.mark.slow, pytest.mark.search]

CHAOS = Path(__file__).with_name("chaos.py")
KINDS = ("kill", "FULL", "ENOSPC")


def test_nothing_is_lost_doubled_or_stranded() -> None:
    done = subprocess.run(
        [sys.executable, str(CHAOS), *KINDS, "--trials", str(examples(1))],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True, text=True, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 1 + len(KINDS)

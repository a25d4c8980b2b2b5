"""Ending processes that start others while they are ended."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from examples import examples

from cockpit.core.processes import kill_tree, list_descendants

RELAY = """
import os, signal, sys, time
while True:
    time.sleep(0.002)
    for _ in range(2):
        if os.fork() == 0:
            os.setsid()
            open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
            break
    else:
        signal.pause()
    if os.path.getsize(sys.argv[1]) > 1000:
        signal.pause()
"""
"""Each process starts two that do the same, out of its group, until some hundred run."""
PATIENCE_S = 60.0


@pytest.mark.search
def test_a_tree_that_grows_is_killed_whole(tmp_path: Path) -> None:
    for trial in range(examples(2)):
        pids = tmp_path / f"pids-{trial}"
        pids.touch()
        first = subprocess.Popen([sys.executable, "-c", RELAY, str(pids)])
        until = time.monotonic() + PATIENCE_S
        while len(pids.read_text().split()) < 1 + 20 * (trial % 3) and time.monotonic() < until:
            time.sleep(0.002)
        kill_tree(first.pid)
        first.wait()
        started = pids.read_text().split()
        while any(_runs(pid, pids) for pid in started) and time.monotonic() < until:
            time.sleep(0.02)
        assert [pid for pid in started if _runs(pid, pids)] == []
        assert pids.read_text().split() == started, "one was started after the end"
        assert list_descendants(first.pid) == []


def _runs(pid: str, argument: Path) -> bool:
    """Whether this process lives, and is one of the test's: numbers are used again."""
    try:
        return str(argument).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False

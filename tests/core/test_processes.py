"""Ending processes that start others while they are ended."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from cockpit.core.processes import kill_tree, list_descendants

RELAY = """
import os, sys, time
while True:
    time.sleep(0.002)
    for _ in range(2):
        if os.fork() == 0:
            os.setsid()
            open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
            break
    else:
        time.sleep(60)
    if os.path.getsize(sys.argv[1]) > 2000:
        time.sleep(60)
"""
"""Each process starts two that do the same, out of its group, until some three hundred run."""


def test_a_tree_that_grows_is_killed_whole(tmp_path: Path) -> None:
    for time_s in (0.05, 0.1, 0.15, 0.2, 0.3):
        pids = tmp_path / f"pids-{time_s}"
        pids.touch()
        first = subprocess.Popen([sys.executable, "-c", RELAY, str(pids)])
        time.sleep(time_s)
        kill_tree(first.pid)
        first.wait()
        started = pids.read_text().split()
        until = time.monotonic() + 30
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

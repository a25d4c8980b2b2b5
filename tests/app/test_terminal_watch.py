"""A screen that hangs without its terminal is ended, also where none of its threads can run."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

HANGS = """
import asyncio, re, time
from cockpit.app.terminal import terminal_watch
terminal_watch.LOST_S = 0.2
terminal_watch._BACKSTOP_S = 0.3

async def run():
    loop = asyncio.get_running_loop()
    watch = terminal_watch.TerminalWatch(loop, lambda: None, lambda: print("ended by force"))
    watch.start()
    watch.report_loss()
    while not watch.is_leaving:
        time.sleep(0.001)
    print("leaving", flush=True)
    re.match("(a+)+$", "a" * 60 + "b")  # for years, and no other thread runs meanwhile

asyncio.run(run())
"""


def test_a_hung_screen_is_ended_by_the_system() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGS], stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    assert done.stdout == b"leaving\n"
    assert done.returncode == -signal.SIGALRM, done.stderr

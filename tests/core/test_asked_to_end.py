"""A request to end that Python loses while a program starts is not lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

LOSES = """
import asyncio, os, signal, weakref
from cockpit.core.processes import interrupt_on_termination, is_asked_to_end, stop_on_interrupt
from cockpit.app.terminal.terminal_app import TerminalApp, run_at_terminal
interrupt_on_termination()
class Module: pass
module = Module()
# As importlib does for the lock of each module: what a callback raises is printed and ignored.
reference = weakref.ref(module, lambda _: os.kill(os.getpid(), signal.SIGNAL))
before = is_asked_to_end()
del module
print(before, is_asked_to_end())

class Screen(TerminalApp):
    def on_mount(self):
        print("the screen opened")
        self.exit(0)

async def stop():
    stopped = asyncio.Event()
    stop_on_interrupt(asyncio.get_running_loop(), stopped.set)
    await stopped.wait()
    return "stopped"

print(asyncio.run(run_at_terminal(Screen())), asyncio.run(stop()))
"""


def test_a_lost_interrupt_is_remembered_by_screens_and_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOSES.replace("SIGNAL", "SIGHUP")], capture_output=True, text=True
    )
    assert done.stdout.split("\n") == ["False True", "130 stopped", ""], done.stderr

"""A request to end that Python loses while a program starts is not lost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest
from textual.app import App

from cockpit.app.terminal.terminal_app import TerminalApp, run_at_terminal
from cockpit.core import processes

LOSES = """
import os, signal, weakref
from cockpit.core.processes import interrupt_on_termination, is_asked_to_end
interrupt_on_termination()
class Module: pass
module = Module()
# As importlib does for the lock of each module: what a callback raises is printed and ignored.
reference = weakref.ref(module, lambda _: os.kill(os.getpid(), signal.SIGNAL))
before = is_asked_to_end()
del module
print(before, is_asked_to_end())
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_lost_interrupt_is_remembered(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOSES.replace("SIGNAL", name)], capture_output=True, text=True
    )
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_a_screen_that_was_asked_to_end_before_it_opened_does_not_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(app: App[int]) -> None:
        raise AssertionError("the screen opened")

    monkeypatch.setattr(processes, "_asked_to_end", [signal.SIGTERM])
    monkeypatch.setattr(TerminalApp, "run_async", fail)
    assert asyncio.run(run_at_terminal(TerminalApp())) == 130


async def test_a_command_that_was_asked_to_end_before_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    for asked in ([], [signal.SIGTERM]):
        monkeypatch.setattr(processes, "_asked_to_end", asked)
        stopped = asyncio.Event()
        processes.stop_on_interrupt(loop, stopped.set)
        try:
            if not asked:
                await asyncio.sleep(0)
                assert not stopped.is_set()
                os.kill(os.getpid(), signal.SIGINT)
            await stopped.wait()
        finally:
            loop.remove_signal_handler(signal.SIGINT)

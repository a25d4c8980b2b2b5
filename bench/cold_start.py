"""What a start costs: a command over an empty Python, the screen over an empty Textual app."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from measure import Row, in_turns, row

RUNS = 21
SCREENS = 7
EMPTY_APP = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("Conversation")
Empty().run()
"""
MARK = b"Conversation"


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        environment = measured(place)
        python, version, listed = in_turns(
            RUNS,
            lambda: ended([sys.executable, "-c", "pass"], place, environment),
            lambda: ended([sys.executable, "-m", "cockpit", "--version"], place, environment),
            lambda: ended(
                [sys.executable, "-m", "cockpit", "proposals", "list"], place, environment
            ),
        )
        empty: list[float] = []
        cockpit: list[float] = []
        for _ in range(SCREENS + 1):
            empty.append(first_frame([sys.executable, "-c", EMPTY_APP], place, environment))
            cockpit.append(first_frame([sys.executable, "-m", "cockpit"], place, environment))
    frames = median(empty[1:]), median(cockpit[1:])
    return [
        row("empty Python process", python, "s"),
        row("cockpit --version, over an empty Python", version - python, "s", most=0.15),
        row("cockpit proposals list, over an empty Python", listed - python, "s"),
        row("first frame of an empty Textual app", frames[0], "s"),
        row("first frame of the cockpit", frames[1], "s"),
        row("first frame, cockpit / empty app", frames[1] / frames[0], "×", most=1.25),
    ]


def measured(place: Path) -> dict[str, str]:
    """The environment of what is measured: like a program that was installed, compiled before.

    The first run of each kind, which does not count, writes the byte code.
    """
    environment = {**os.environ, "COCKPIT_CONFIG_DIR": str(place), "TERM": "xterm-256color"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**environment, "PYTHONPYCACHEPREFIX": str(place / "bytecode")}


def ended(argv: Sequence[str], place: Path, environment: dict[str, str]) -> None:
    """Run to the end, which must be a good one."""
    subprocess.run(argv, cwd=place, env=environment, check=True, capture_output=True)


def first_frame(argv: Sequence[str], place: Path, environment: dict[str, str]) -> float:
    """Seconds from the start of ``argv`` on a terminal of its own until its first pane shows."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 42, 150, 0, 0))
    started = time.perf_counter()
    process = subprocess.Popen(
        argv,
        cwd=place,
        env=environment,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    try:
        read_until(leader, MARK)
        return time.perf_counter() - started
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(leader)


def read_until(leader: int, mark: bytes, patience_s: float = 60.0) -> bytes:
    """What the terminal shows up to ``mark``. Raises ``TimeoutError``."""
    seen = b""
    deadline = time.monotonic() + patience_s
    while mark not in seen:
        ready, _, _ = select.select([leader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError(f"{mark!r} did not show; the end of what did: {seen[-300:]!r}")
        seen += os.read(leader, 65_536)
    return seen

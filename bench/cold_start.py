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
from dataclasses import dataclass
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
        yield Static("cockpit")
Empty().run()
"""
MARK = b"cockpit"
"""In the empty app its text; in the cockpit's first frame the header."""
FILLED = b"ype a task:"
"""In the prompt of the main screen, which is drawn complete."""


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        environment = measured(place)
        python, version, listed = in_turns(
            RUNS,
            lambda: ended([sys.executable, "-c", "pass"], place, environment),
            lambda: ended([sys.executable, "-m", "cockpit", "--version"], place, environment),
            lambda: ended([sys.executable, "-m", "cockpit", "proposals"], place, environment),
        )
        empty: list[tuple[Moment, ...]] = []
        cockpit: list[tuple[Moment, ...]] = []
        for _ in range(SCREENS + 1):
            empty.append(shown([sys.executable, "-c", EMPTY_APP], place, environment, MARK))
            cockpit.append(
                shown([sys.executable, "-m", "cockpit"], place, environment, MARK, FILLED)
            )
    floor, (frame, filled) = median_of(empty)[0], median_of(cockpit)
    return [
        row("empty Python process", python, "s"),
        row("cockpit --version, over an empty Python", version - python, "s", most=0.15),
        row("cockpit proposals, over an empty Python", listed - python, "s"),
        row("first frame of an empty Textual app", floor.wall, "s"),
        row("first frame of the cockpit: its header", frame.wall, "s"),
        row("first frame, cockpit / empty app", frame.wall / floor.wall, "×", most=1.25),
        row("… in CPU", frame.cpu / floor.cpu, "×", most=1.25),
        row("main screen, with its state, after the first frame", filled.wall - frame.wall, "s"),
        row("… in CPU", filled.cpu - frame.cpu, "s CPU", most=0.3),
        row("main screen, with its state, cockpit / empty app", filled.wall / floor.wall, "×"),
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


@dataclass(frozen=True)
class Moment:
    """Seconds since a program was started, and seconds of the processor that it has used since."""

    wall: float
    cpu: float


def median_of(runs: Sequence[tuple[Moment, ...]]) -> list[Moment]:
    """The median of each moment; the first run, which writes byte code, does not count."""
    return [
        Moment(median(each.wall for each in moments), median(each.cpu for each in moments))
        for moments in zip(*runs[1:], strict=True)
    ]


def shown(
    argv: Sequence[str], place: Path, environment: dict[str, str], *marks: bytes
) -> tuple[Moment, ...]:
    """When ``argv``, on a terminal of its own, shows each of ``marks``, which come in order."""
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
        moments: list[Moment] = []
        seen = b""
        for mark in marks:
            if mark not in seen:
                seen = read_until(leader, mark)
            moments.append(Moment(time.perf_counter() - started, cpu_seconds(process.pid)))
        return tuple(moments)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(leader)


def cpu_seconds(pid: int) -> float:
    """What the threads of a process have used of the processor."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


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

"""An agent in the user's own terminal asks: how soon its permission stands on an open screen, and the cost
of a hook that may wait while no screen is open.

The clock of the first begins before the hook's process is started and ends when a terminal has received the
card. The second is over a hook that never waits, taking turns in one run.
"""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from statistics import median

from cold_start import measured, read_until
from hook import once, payload
from measure import Row, at, row

from cockpit.core.find_checkout import find_checkout
from cockpit.core.open_cockpits import connect, list_sockets
from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store

ASKED = 40
CLOSED = 31
LOOKS = 2_000
PAUSE_S = 0.25


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        project = top / "project"
        environment = measured(top)
        environment.pop("CLAUDE_PROJECT_DIR", None)
        project.mkdir()
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        open_state(project)
        look = noticed(project)
        plain, waiting = closed(project, environment)
        shown = opened(project, environment)
    return [
        row("looking for an open cockpit, none there", look, "ms", most=5),
        row("a permission, hook without --approve, wall", plain * 1000, "ms"),
        row("a permission, no cockpit open, over it", (waiting - plain) * 1000, "ms", most=40),
        row("hook's start → card on the screen, p50", at(0.5, shown), "ms"),
        row("hook's start → card on the screen, p95", at(0.95, shown), "ms", most=150),
    ]


def open_state(project: Path) -> None:
    """Make the state of the project."""
    place = locate_project(project)
    place.prepare()
    Store.open(place.database).close()


def noticed(project: Path) -> float:
    """Milliseconds of one look for an open cockpit, with the socket of a dead one there."""
    checkout = find_checkout(str(project))
    assert checkout is not None
    folder = Path(checkout.state) / "open"
    folder.mkdir(exist_ok=True)
    (folder / "1.sock").touch()
    started = time.perf_counter()
    for _ in range(LOOKS):
        assert not any(map(connect, list_sockets(checkout.state)))
    return (time.perf_counter() - started) / LOOKS * 1000


def closed(project: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Median wall seconds of a permission's hook that never waits, and of one that may."""
    hook = [str(Path(sys.executable).with_name("cockpit")), "hook", "--agent", "claude"]
    asks = ask(project, 0)
    seen: tuple[list[float], list[float]] = ([], [])
    for turn in range(CLOSED + 1):
        for argv, times in ((hook, seen[0]), ([*hook, "--approve"], seen[1])):
            wall, _ = once(argv, asks, environment)
            if turn:
                times.append(wall)
    return median(seen[0]), median(seen[1])


def opened(project: Path, environment: dict[str, str]) -> list[float]:
    """Milliseconds from the start of each hook until a terminal shows its card."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 42, 150, 0, 0))
    screen = subprocess.Popen(
        [sys.executable, "-m", "cockpit"],
        cwd=project,
        env=environment,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    try:
        read_until(leader, b"Conversation")
        checkout = find_checkout(str(project))
        assert checkout is not None
        while not any(map(connect, list_sockets(checkout.state))):
            time.sleep(0.05)
        return [_one(project, environment, leader, number) for number in range(ASKED)][3:]
    finally:
        os.killpg(screen.pid, signal.SIGKILL)
        screen.wait()
        os.close(leader)


def _one(project: Path, environment: dict[str, str], leader: int, number: int) -> float:
    argv = [str(Path(sys.executable).with_name("cockpit")), "hook", "--agent", "claude"]
    started = time.perf_counter()
    process = subprocess.Popen(
        [*argv, "--approve"], cwd=project, env=environment, stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(ask(project, number))
    process.stdin.close()
    read_until(leader, f"mark{number:04d}x".encode())
    took = (time.perf_counter() - started) * 1000
    process.terminate()
    process.wait()
    read_until(leader, b"No proposals")
    time.sleep(PAUSE_S)
    return took


def ask(project: Path, number: int) -> bytes:
    """A permission request whose command is a word that stands nowhere else."""
    command = f"touch mark{number:04d}x"
    tool = {"tool_name": "Bash", "tool_input": {"command": command}}
    return payload(project, "PermissionRequest", **tool)

"""The screen on stores of 10,000 to 1,000,000 journal rows: how soon its panes show the state, what
memory it takes, and how often it wakes up while nothing happens."""

from __future__ import annotations

import fcntl
import math
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from cold_start import cpu_seconds, measured, read_until
from large_store import build
from measure import Row, row

from cockpit.core.project_paths import locate_project

SIZES = (10_000, 100_000, 1_000_000)
RUNS = 5
IDLE_S = 10.0
EMPTY = b"ype a task:"
CAUGHT_UP = (b"newest session", b"waiting proposal")
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]")


@dataclass(frozen=True, slots=True)
class Opening:
    """One start: seconds until the panes show the state, after the first frame, as waited for and of the
    processor; MiB; wakeups a second."""

    caught_up_s: float
    caught_up_cpu_s: float
    memory_mib: float
    wakeups: float


def rows() -> list[Row]:
    """The table of this bench."""
    table: list[Row] = []
    took: dict[int, float] = {}
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            environment = measured(root)
            place = locate_project(root)
            place.prepare()
            build(place.database, size, root)
            openings = [_open(root, environment, CAUGHT_UP) for _ in range(RUNS + 1)][1:]
            took[size] = median(each.caught_up_s for each in openings)
            last = size == SIZES[-1]
            bar = 0.3 if last else None
            used = median(each.caught_up_cpu_s for each in openings)
            table += [
                row(f"caught up after the first frame, {size:,} rows", took[size], "s", most=bar),
                row("… in CPU", used, "s CPU", most=bar),
            ]
            if last:
                memory = max(each.memory_mib for each in openings)
                table.append(row(f"memory, {size:,} rows", memory, "MiB", most=80))
    ratio = took[SIZES[-1]] / took[SIZES[0]]
    exponent = math.log(ratio) / math.log(SIZES[-1] / SIZES[0])
    table.append(row("growth exponent of catching up", exponent, "", most=0.1))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        idle = _open(root, measured(root), (EMPTY,), idle=IDLE_S)
        provider = {"COCKPIT_MODEL": "anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY": "none"}
        watching = _open(root, {**measured(root), **provider}, (EMPTY,), idle=IDLE_S)
    table.append(row("wakeups of an idle screen", idle.wakeups, "a second", most=10))
    table.append(
        row("memory of an idle screen, a provider's model", watching.memory_mib, "MiB", most=80)
    )
    return table


def _open(
    root: Path, environment: dict[str, str], words: tuple[bytes, ...], *, idle: float = 0.0
) -> Opening:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 80, 160, 0, 0))
    screen = subprocess.Popen(
        [sys.executable, "-m", "cockpit"],
        cwd=root,
        env=environment,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    try:
        written = read_until(leader, b"Conversation")
        began, used_before = time.perf_counter(), cpu_seconds(screen.pid)
        _read_words(leader, written, words)
        took, used = time.perf_counter() - began, cpu_seconds(screen.pid) - used_before
        _drain(leader, 5.0 if idle else 0.2)
        before = _wakeups(screen.pid)
        _drain(leader, idle)
        woken = _wakeups(screen.pid) - before
        return Opening(took, used, _memory(screen.pid), woken / idle if idle else 0.0)
    finally:
        os.killpg(screen.pid, signal.SIGKILL)
        screen.wait()
        os.close(leader)


def _read_words(leader: int, written: bytes, words: tuple[bytes, ...]) -> None:
    deadline = time.monotonic() + 120
    while not all(word in _ESCAPES.sub(b"", written) for word in words):
        ready, _, _ = select.select([leader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError(f"{words!r} did not show")
        written += os.read(leader, 65_536)


def _drain(leader: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([leader], [], [], left)[0]:
            os.read(leader, 65_536)


def _wakeups(pid: int) -> int:
    lines = [
        line
        for status in Path(f"/proc/{pid}/task").glob("*/status")
        for line in status.read_text(encoding="utf-8").splitlines()
    ]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024

"""All projects on one screen: 50 stores of 100,000 journal rows over one, and how soon a new proposal in any
of them is painted. Both screens are started in turn, so that the ratios hold on a busy machine."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
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
from measure import Row, at, row

from cockpit.core.project_paths import ProjectPaths
from cockpit.core.state_folder import VARIABLE
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals

PROJECTS = 50
ROWS = 100_000
RUNS = 7
PAINTS = 60
IDLE_S = 5.0
MARK = b"All projects"
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]")


@dataclass(frozen=True, slots=True)
class Start:
    """One start: seconds to the first frame and until every project was read, and those of the processor."""

    frame_s: float
    frame_cpu_s: float
    read_s: float
    read_cpu_s: float


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        one, many = _user(root / "one", 1), _user(root / "many", PROJECTS)
        _copy_stores(one, many)
        starts: dict[int, list[Start]] = {1: [], PROJECTS: []}
        for number in range(RUNS + 1):
            for user in (one, many):
                start = _start(user)
                if number:  # the first of each writes the byte code
                    starts[len(user.places)].append(start)
        alone, _ = _painted(one)
        painted, idle_cpu = _painted(many)
    table = [row("first frame, one project", median(s.frame_s for s in starts[1]), "s")]
    for name, read in (
        ("first frame", lambda s: s.frame_s),
        ("first frame, CPU", lambda s: s.frame_cpu_s),
        ("every project read and drawn", lambda s: s.read_s),
        ("every project read and drawn, CPU", lambda s: s.read_cpu_s),
    ):
        ratio = median(map(read, starts[PROJECTS])) / median(map(read, starts[1]))
        table.append(row(f"{name}, {PROJECTS} projects / one", ratio, "×", most=2))
    return [
        *table,
        row("every project read and drawn", median(s.read_s for s in starts[PROJECTS]), "s"),
        row("a new proposal in any project → painted, p50", at(0.5, painted), "ms"),
        row("a new proposal in any project → painted, p95", at(0.95, painted), "ms", most=250),
        row(f"… p50, {PROJECTS} projects / one", at(0.5, painted) / at(0.5, alone), "×", most=2),
        row("an idle screen over all projects", idle_cpu * 100, "% CPU", most=5),
    ]


@dataclass(frozen=True, slots=True)
class _User:
    """A user with so many projects, and the environment of their cockpit."""

    places: list[ProjectPaths]
    environment: dict[str, str]


def _user(root: Path, count: int) -> _User:
    environment = {**measured(root), VARIABLE: str(root / "state")}
    os.environ[VARIABLE] = environment[VARIABLE]
    places = []
    for number in range(count):
        home = root / f"project-{number:02d}"
        (home / ".git").mkdir(parents=True)
        (home / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        place = ProjectPaths(root=home, home=home, git=True)
        place.prepare()
        places.append(place)
    return _User(places, environment)


def _database(user: _User, place: ProjectPaths) -> Path:
    os.environ[VARIABLE] = user.environment[VARIABLE]
    return place.database


def _copy_stores(one: _User, many: _User) -> None:
    """Write one large store, and copy it to every project."""
    first = _database(one, one.places[0])
    build(first, ROWS, one.places[0].home)
    with Store.open(first) as store:
        store.write_now(_decide_all)
    for place in many.places:
        shutil.copyfile(first, _database(many, place))


def _decide_all(tx: Tx) -> None:
    for each in proposals.select_pending(tx.connection):
        proposals.decide(
            tx,
            each.proposal_id,
            verdict="rejected",
            by="person",
            shown_digest=each.shown_digest,
        )


def _open(user: _User) -> tuple[subprocess.Popen[bytes], int]:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 120, 160, 0, 0))
    screen = subprocess.Popen(
        [sys.executable, "-m", "cockpit", "--all"],
        cwd=user.places[0].home,
        env=user.environment,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    return screen, leader


def _close(screen: subprocess.Popen[bytes], leader: int) -> None:
    os.killpg(screen.pid, signal.SIGKILL)
    screen.wait()
    os.close(leader)


def _start(user: _User) -> Start:
    began = time.perf_counter()
    screen, leader = _open(user)
    try:
        written = read_until(leader, MARK)
        frame_s, frame_cpu_s = time.perf_counter() - began, cpu_seconds(screen.pid)
        _read_projects(leader, written, user)
        return Start(frame_s, frame_cpu_s, time.perf_counter() - began, cpu_seconds(screen.pid))
    finally:
        _close(screen, leader)


def _read_projects(leader: int, written: bytes, user: _User) -> None:
    """Read until each project is drawn as it is: all have the same row."""
    wanted = [f"project-{number:02d}".encode() for number in range(len(user.places))]
    deadline = time.monotonic() + 120
    while True:
        text = _ESCAPES.sub(b"", written)
        if all(word in text for word in wanted) and text.count(b"main \xc2\xb7") >= len(wanted):
            return
        ready, _, _ = select.select([leader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError("not every project was drawn")
        written += os.read(leader, 65_536)


def _painted(user: _User) -> tuple[list[float], float]:
    """Propose in one project after the other; return milliseconds until each is painted, and idle CPU."""
    screen, leader = _open(user)
    try:
        _read_projects(leader, b"", user)
        _drain(leader, 2.0)
        before = cpu_seconds(screen.pid)
        _drain(leader, IDLE_S)
        idle = (cpu_seconds(screen.pid) - before) / IDLE_S
        took = []
        for number in range(PAINTS):
            place = user.places[number * 7 % len(user.places)]
            with Store.open(_database(user, place)) as store:
                took.append(_one(store, leader, f"mark{number:04d}x"))
        return took[5:], idle
    finally:
        _close(screen, leader)


def _one(store: Store, leader: int, word: str) -> float:
    (session_id,) = store.read_now(
        lambda c: c.execute("SELECT session_id FROM sessions ORDER BY updated_at DESC").fetchone()
    )

    def propose(tx: Tx) -> None:
        proposals.create(
            tx, proposal_id=f"p-{word}", kind="action", session_id=session_id, wave_id="",
            title=word, risk="low",
            body={"type": "edit_file", "fields": [], "body": "text", "payload": {}},
        )  # fmt: skip

    began = time.monotonic()
    store.write_now(propose)
    read_until(leader, word.encode())
    took = (time.monotonic() - began) * 1_000
    store.write_now(_decide_all)
    _drain(leader, 0.3)
    return took


def _drain(leader: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([leader], [], [], left)[0]:
            os.read(leader, 65_536)

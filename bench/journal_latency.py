"""How long until another process sees a row: as a reader of the journal, and on its screen.

The writer notes the monotonic clock (one for all processes of a machine) before its write begins.
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

from cold_start import read_until
from measure import Row, at, row

from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import messages, sessions

WRITES = 150
PAINTS = 60
PAUSE_S = 0.02
FOLLOWER = """
import asyncio, sys, time
from pathlib import Path
from cockpit.store.db.database import Store
from cockpit.store.journal.follow import follow

async def main(path, count):
    with Store.open(Path(path)) as store:
        print("ready", flush=True)
        seen = 0
        async for rows in follow(store):
            now = time.monotonic_ns()
            for row in rows:
                if row.action == "session.changed":
                    print((now - int(row.raw_detail()["title"])) / 1e6)
                    seen += 1
            if seen >= count:
                return

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        place = locate_project(Path(folder))
        place.prepare()
        with Store.open(place.database) as store:
            session_id = store.write_now(lambda tx: _session(tx, Path(folder)))
            seen = _seen(store, session_id)
            painted = _painted(store, session_id, Path(folder))
    return [
        row("journal write → read elsewhere, p50", at(0.5, seen), "ms"),
        row("journal write → read elsewhere, p95", at(0.95, seen), "ms", most=150),
        row("journal write → painted elsewhere, p50", at(0.5, painted), "ms"),
        row("journal write → painted elsewhere, p95", at(0.95, painted), "ms", most=150),
    ]


def _seen(store: Store, session_id: str) -> list[float]:
    reader = subprocess.Popen(
        [sys.executable, "-c", FOLLOWER, str(store.path), str(WRITES)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout is not None
    reader.stdout.readline()
    for _ in range(WRITES):
        before = str(time.monotonic_ns())
        store.write_now(lambda tx, before=before: sessions.change(tx, session_id, title=before))
        time.sleep(PAUSE_S)
    lines = reader.stdout.read().split()
    reader.wait()
    return [float(line) for line in lines][10:]


def _painted(store: Store, session_id: str, folder: Path) -> list[float]:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 42, 150, 0, 0))
    environment = {**os.environ, "COCKPIT_CONFIG_DIR": str(folder), "TERM": "xterm-256color"}
    screen = subprocess.Popen(
        [sys.executable, "-m", "cockpit", "-r", session_id],
        cwd=folder,
        env=environment,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    try:
        read_until(leader, b"Conversation")
        return [_one(store, session_id, leader, number) for number in range(PAINTS)][5:]
    finally:
        os.killpg(screen.pid, signal.SIGKILL)
        screen.wait()
        os.close(leader)


def _one(store: Store, session_id: str, leader: int, number: int) -> float:
    word = f"mark{number:04d}x"
    started = time.monotonic()
    store.write_now(
        lambda tx: messages.complete(tx, session_id=session_id, role="notice", text=word)
    )
    read_until(leader, word.encode())
    took = (time.monotonic() - started) * 1000
    time.sleep(PAUSE_S)
    return took


def _session(tx: Tx, root: Path) -> str:
    made = sessions.create(
        tx,
        task_type="investigate",
        title="latency",
        words="latency",
        target={},
        model="offline",
        policy="ask",
        interactive=True,
        root=root,
        rev=None,
        profile_id="default",
        limits={},
        project="bench",
        branch="main",
    )
    return made.session_id

"""Stores in real files and real processes, shared by the tests of the store."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

from state_for_tests import put_store

from cockpit.core.clock import CountingIds, FixedClock
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import sessions

PATIENCE_S = 60.0
# Put together here so that no file of this repository holds anything that looks like a secret.
CANARY = "ghp_" + "A1b2C3d4E5" * 4


def open_store(folder: Path, *, clock: FixedClock | None = None, **options: Any) -> Store:
    """Open the store in ``folder`` with a fixed clock and counting ids."""
    return Store.open(
        put_store(folder / "cockpit.db"), clock or FixedClock(), CountingIds(), **options
    )


def begin(tx: Tx, **changes: Any) -> str:
    """Create a session; returns its id."""
    words: dict[str, Any] = {
        "task_type": "bug",
        "title": "a title",
        "words": "fix it",
        "target": {},
        "model": "offline",
        "policy": "ask",
        "interactive": False,
        "root": Path("/project"),
        "rev": None,
        "profile_id": "default",
        "limits": {},
        "project": "made",
        "branch": "main",
    }
    return sessions.create(tx, **{**words, **changes}).session_id


def python(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a process that runs ``code``."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


_RACER = """
import sys
from pathlib import Path
from cockpit.core.errors import AlreadyDecided
from cockpit.store.db.database import Store
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import outbox, proposals
with Store.open(Path(sys.argv[2])) as store:
    print("ready", flush=True)
    sys.stdin.readline()
"""


def racer(code: str) -> str:
    """A program that opens the store of its second argument, and runs ``code`` once it reads a line."""
    return _RACER + indent(code, "    ")


def race(code: str, count: int, *arguments: object) -> list[str]:
    """Let ``count`` processes run ``code`` at the same moment; returns what each printed.

    The code prints ``ready`` and reads a line before it runs. Its first argument is its number.
    """
    runners = [python(code, number, *arguments) for number in range(count)]
    for runner in runners:
        assert runner.stdout is not None
        assert runner.stdout.readline() == "ready\n"
    for runner in runners:
        assert runner.stdin is not None
        runner.stdin.write("go\n")
        runner.stdin.flush()
    outputs = []
    for runner in runners:
        out, err = runner.communicate(timeout=PATIENCE_S)
        assert runner.returncode == 0, err
        outputs.append(out)
    return outputs


def hold_writer(store: Store) -> Callable[[], None]:
    """Keep the writer busy, so that later writes wait together; call the result to release it."""
    gate, started = threading.Event(), threading.Event()

    def wait(tx: Tx) -> None:
        # A change without a trace: listeners are called after it.
        tx.execute("UPDATE journal_head SET seq=seq")
        started.set()
        gate.wait(PATIENCE_S)

    thread = threading.Thread(target=lambda: store.write_now(wait))
    thread.start()
    started.wait(PATIENCE_S)

    def go() -> None:
        gate.set()
        thread.join()

    return go

"""Processes that write at once take turns, and nobody waits for one that is gone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from store.store_world import open_store

from cockpit.store.db.transaction import Tx
from cockpit.store.db.write_queue import SUFFIX
from cockpit.store.journal import verify_chain
from cockpit.store.journal.event_types import Action

HOLD = """
import sys, time
from pathlib import Path
from cockpit.store.db.connection import connect
from cockpit.store.db.write_queue import WriteQueue
path = Path(sys.argv[1])
queue = WriteQueue(path, 60)
queue.enter()
if sys.argv[2] == "writing":
    connection = connect(path)
    connection.execute("BEGIN IMMEDIATE")
print("there", flush=True)
sys.stdin.read()
"""


def row(tx: Tx) -> int:
    return tx.append_row(Action.SESSION_RUNNING)


@contextmanager
def another_writer(path: Path, state: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has its turn; ``state`` is ``writing`` or ``thinking`` (without SQLite's lock)."""
    command = [sys.executable, "-c", HOLD, str(path), state]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_turn_of_a_killed_writer_goes_on(store) -> None:
    with another_writer(store.path, "writing") as other:
        waiting = store._writer.submit(row)
        other.kill()
        other.wait()
        assert waiting.result(60)
        assert store.read_now(verify_chain.verify).ok


def test_a_writer_goes_on_without_its_turn_when_another_one_hangs(tmp_path: Path) -> None:
    with open_store(tmp_path, busy_timeout_ms=20) as store, another_writer(store.path, "thinking"):
        assert store.write_now(row)


@pytest.mark.parametrize("kind", ["folder", "link", "garbage"])
def test_without_a_usable_file_writes_work_as_ever(tmp_path: Path, kind: str) -> None:
    place = tmp_path / f"cockpit.db{SUFFIX}"
    if kind == "folder":
        place.mkdir()
    elif kind == "link":
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.write_bytes(b"\xff" * 40)
    with open_store(tmp_path) as store:
        assert store.path.name == "cockpit.db"
        assert store.write_now(row) < store.write_now(row)
    assert not (tmp_path / "elsewhere").exists()

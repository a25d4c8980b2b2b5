"""``cockpit demo`` in a real terminal, with real keys: the whole walk that the guide describes."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import sqlite3
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import run_cockpit
from commands.demo.demo_world import bare_environment
from state_for_tests import state_of

from cockpit.commands.demo.demo_guide import DISCUSS_WORDS
from cockpit.core.project_paths import GitRefuses

pytestmark = pytest.mark.slow

PATIENCE_S = 120.0
ESCAPE = b"\x1b[27u"
"""As terminals send it that tell it from the begin of a sequence: the next letter is not joined to it."""

AGAIN_S = 3.0
"""A key that came too early, before the proposal was armed, is pressed again."""

PARTS, FOLLOWS_S = 20, 0.01
"""How many parts of what is drawn are read before the next look, and how soon each follows."""


class Terminal:
    """A program on a pseudo-terminal of 140 by 40; what it draws is read all the time."""

    def __init__(self, words: list[str], env: dict[str, str], cwd: Path) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
        self.process = subprocess.Popen(
            words, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=cwd, start_new_session=True
        )
        os.close(slave)
        self.drawn = b""

    def until(self, seen: Callable[[], bool], *, keys: bytes = b"") -> None:
        """Read on until ``seen``; ``keys`` are pressed now, and again while nothing comes of it."""
        begun = pressed = time.monotonic()
        self.press(keys)
        while not seen():
            now = time.monotonic()
            assert now - begun < PATIENCE_S, self.drawn[-3000:].decode("utf-8", "replace")
            if keys and now - pressed > AGAIN_S:
                self.press(keys)
                pressed = now
            self.read(0.1)

    def read(self, wait_s: float) -> None:
        """Read what comes within ``wait_s``, and what follows it at once: looking at each part is dear."""
        for _ in range(PARTS):
            if not select.select([self.master], [], [], wait_s)[0]:
                return
            try:
                self.drawn += os.read(self.master, 65_536)
            except OSError:
                return  # the program has gone, and its end of the terminal with it
            wait_s = FOLLOWS_S

    def press(self, keys: bytes) -> None:
        if keys:
            os.write(self.master, keys)

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    env = bare_environment(tmp_path / "home", TERM="xterm-256color", COLORTERM="truecolor")
    words = [*run_cockpit.PROGRAM, "demo", "--dir", str(tmp_path / "sample")]
    made = Terminal(words, env, tmp_path)
    yield made
    made.end()


class Journal:
    """What the demo has stored so far, read beside it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._database: Path | None = None

    def pending(self, kind: str) -> Callable[[], bool]:
        return lambda: self._proposals(kind, "pending") > 0

    def decided(self, kind: str, status: str, count: int = 1) -> Callable[[], bool]:
        return lambda: self._proposals(kind, status) >= count

    def said(self, text: str) -> Callable[[], bool]:
        return lambda: self._count("messages WHERE role='person' AND text=?", text) > 0

    def ended(self, task_type: str) -> Callable[[], bool]:
        where = "sessions WHERE status='completed' AND task_type=?"
        return lambda: self._count(where, task_type) > 0

    def _proposals(self, kind: str, status: str) -> int:
        where = (
            "proposals WHERE coalesce(json_extract(body_json, '$.type'), 'context')=? AND status=?"
        )
        return self._count(where, kind, status)

    def _count(self, where: str, *values: str) -> int:
        if self._database is None:
            try:
                database = state_of(self._root) / "cockpit.db"
            except GitRefuses:
                return 0  # the demo is making the repository, by which its store is found
            if not database.exists():
                return 0
            self._database = database  # found once: git is asked for it
        with closing(sqlite3.connect(f"{self._database.as_uri()}?mode=ro", uri=True)) as reader:
            try:
                (found,) = reader.execute(f"SELECT count(*) FROM {where}", values).fetchone()
            except sqlite3.OperationalError as error:
                assert "no such table" in str(error), "only a store that is being made has none"
                return 0
        return int(found)


def approve(terminal: Terminal, done: Callable[[], bool]) -> None:
    """Enter, and the second key where one is asked for."""
    before = len(terminal.drawn)

    def asked() -> bool:
        return b"any other key cancel" in terminal.drawn[before:]

    terminal.until(lambda: asked() or done(), keys=b"\r")
    if not done():
        terminal.press(b"y")
    terminal.until(done)


def test_the_review_of_the_demo_with_real_keys(terminal: Terminal, tmp_path: Path) -> None:
    root = tmp_path / "sample"
    journal = Journal(root)
    terminal.until(journal.pending("context"))
    terminal.until(lambda: b"GUIDE 1/7" in terminal.drawn)
    # The cursor is on the t.
    terminal.until(lambda: b"ype your reply" in terminal.drawn, keys=ESCAPE)
    terminal.press(DISCUSS_WORDS.encode())
    terminal.until(journal.said(DISCUSS_WORDS), keys=b"\r")
    assert journal.decided("context", "discussed")()
    terminal.until(journal.pending("context"))
    approve(terminal, journal.decided("context", "approved"))
    terminal.until(journal.pending("write_file"))
    approve(terminal, journal.decided("write_file", "approved"))
    terminal.until(journal.ended("review_pr"))
    terminal.until(lambda: terminal.process.poll() is not None, keys=b"\x04")
    assert terminal.process.returncode == 0, terminal.drawn[-3000:].decode("utf-8", "replace")
    terminal.read(0.5)
    assert b"The sample project is in" in terminal.drawn
    (review,) = (root / ".cockpit" / "reviews").iterdir()
    assert review.read_text().startswith("# Review of main..feature/retry-backoff")

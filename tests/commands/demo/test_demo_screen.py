"""``cockpit demo`` in a real terminal, with real keys: the whole walk that the guide describes."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from commands.demo.demo_world import bare_environment
from faults.terminal_trials import PATIENCE_S, Screen
from state_for_tests import state_of

from cockpit.commands.demo.demo_guide import DISCUSS_WORDS, LINES
from cockpit.core.project_paths import GitRefuses

pytestmark = pytest.mark.slow

ESCAPE = b"\x1b[27u"
"""As terminals send it that tell it from the begin of a sequence: the next letter is not joined to it."""
AGAIN_S = 3.0
"""A key that came too early, before the proposal was armed, is pressed again."""
PROPOSED = (
    "FROM proposals WHERE coalesce(json_extract(body_json, '$.type'), 'context')=? AND status=?"
)


class Demo:
    """The program on its terminal, and what it has stored so far, read beside it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "sample"
        env = bare_environment(folder / "home", TERM="xterm-256color", COLORTERM="truecolor")
        self.screen = Screen(("demo", "--dir", str(self.root)), folder, env, "closed")
        self._database: Path | None = None

    def rows(self, query: str, *values: str) -> list[tuple[str]]:
        if self._database is None:
            try:
                database = state_of(self.root) / "cockpit.db"
            except GitRefuses:
                return []  # the demo is making the repository, by which its store is found
            if not database.exists():
                return []
            self._database = database  # found once: git is asked for it
        with closing(sqlite3.connect(f"{self._database.as_uri()}?mode=ro", uri=True)) as reader:
            try:
                return reader.execute(f"SELECT {query}", values).fetchall()
            except sqlite3.OperationalError as error:
                assert "no such table" in str(error), "only a store that is being made has none"
                return []

    def proposed(self, kind: str, status: str) -> Callable[[], object]:
        return lambda: self.rows(f"title {PROPOSED}", kind, status)

    def until(self, seen: Callable[[], object], *, keys: bytes = b"") -> None:
        """Read on until ``seen``; ``keys`` are pressed now, and again while nothing comes of it."""
        begun = pressed = time.monotonic()
        self.screen.press(keys)
        while not seen():
            now = time.monotonic()
            assert now - begun < PATIENCE_S, self.screen.wrote[-3000:]
            if keys and now - pressed > AGAIN_S and self.screen.read(0.01):
                self.screen.press(keys)
                pressed = now
            self.screen.watch(0.1)

    def approve(self, kind: str) -> None:
        """Enter, and the second key where one is asked for."""
        done, before = self.proposed(kind, "approved"), len(self.screen.wrote)
        self.until(self.proposed(kind, "pending"))
        self.until(
            lambda: b"any other key cancel" in self.screen.wrote[before:] or done(), keys=b"\r"
        )
        self.until(done, keys=b"" if done() else b"y")


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    made = Demo(tmp_path)
    yield made
    made.screen.program.kill()
    made.screen.program.wait()
    os.close(made.screen.main)


def test_the_review_of_the_demo_with_real_keys(demo: Demo) -> None:
    screen = demo.screen
    demo.until(demo.proposed("context", "pending"))
    screen.until("GUIDE 1/7")
    # The cursor is on the t.
    demo.until(lambda: b"ype your reply" in screen.wrote, keys=ESCAPE)
    screen.press(DISCUSS_WORDS.encode())
    said = "1 FROM messages WHERE role='person' AND text=?"
    demo.until(lambda: demo.rows(said, DISCUSS_WORDS), keys=b"\r")
    assert demo.proposed("context", "discussed")()
    demo.approve("context")
    demo.approve("write_file")
    ended = "1 FROM sessions WHERE status='completed' AND task_type=?"
    demo.until(lambda: demo.rows(ended, "review_pr"))
    steps = ("context", "context.again", "write_file", "completed")
    guided = [(LINES[f"review.{step}"],) for step in steps]
    told = "text FROM messages WHERE role='notice' ORDER BY rowid"
    demo.until(lambda: len(demo.rows(told)) >= len(guided))
    demo.until(lambda: screen.program.poll() is not None, keys=b"\x04")
    assert screen.program.returncode == 0, screen.wrote[-3000:]
    screen.watch(0.5)
    assert b"The sample project is in" in screen.wrote
    (review,) = (demo.root / ".cockpit" / "reviews").iterdir()
    assert review.read_text().startswith("# Review of main..feature/retry-backoff")
    # What to press next is told once, and not to the model.
    assert demo.rows(told) == guided
    facts = demo.rows("normalized_json FROM observed_facts")
    assert facts and not any("GUIDE" in text for (text,) in facts)

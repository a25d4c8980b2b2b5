"""Work that is killed, or whose calls fail, at a few of its moments; ``make chaos`` takes many."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from examples import examples
from faults.injected_faults import Fault
from faults.session_trials import Child, judge, list_moments, make_world, run_session

from cockpit.core.project_paths import locate_project

pytestmark = pytest.mark.slow

CHAOS = Path(__file__).with_name("chaos.py")
KINDS = ("kill", "FULL")


@pytest.mark.search
def test_nothing_is_lost_doubled_or_stranded() -> None:
    done = subprocess.run(
        [sys.executable, str(CHAOS), *KINDS, "--trials", str(examples(1))],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True, text=True, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 1 + len(KINDS)


def test_a_disk_that_is_full_pauses_the_session_and_the_write_happens_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(tmp_path / "world")
    monkeypatch.setenv("COCKPIT_STATE_DIR", str(world.folder / "state"))
    moments = list_moments(world.copy(tmp_path / "listed"))
    effects = [moment.words for moment in moments if moment.kind == "effect"]
    write = next(at for at, words in enumerate(effects, 1) if words.endswith(".cockpit"))
    code, words, _ = Child.start(world, lambda: run_session(world), Fault("ENOSPC", write)).wait()
    assert (code, words.partition(":")[0]) == (1, "MachineFault"), words
    assert "calc.py cannot be written: No space left on device. Make room" in words
    with closing(sqlite3.connect(locate_project(world.root).database)) as seen:
        assert seen.execute("SELECT status, outcome FROM sessions").fetchall() == [
            ("waiting", "paused")
        ]
        (count,) = seen.execute("SELECT count(*) FROM orientation_packets").fetchone()
    code, words, _ = Child.start(world, lambda: run_session(world)).wait()
    assert (code, words) == (0, "")
    assert judge(world), judge(world)
    assert count == 2

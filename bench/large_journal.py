"""A store of a million journal rows: verifying, counting, checking, waves and pruning on it."""

from __future__ import annotations

import asyncio
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import wave
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from cold_start import measured
from large_store import BEGAN, build
from measure import Row, at, row

from cockpit.core.clock import format_time
from cockpit.core.project_paths import locate_project
from cockpit.loop.views.metrics import fold_counts
from cockpit.store.db.database import Store
from cockpit.store.db.free_space import free_pages
from cockpit.store.journal.prune_journal import prune_journal

ROWS = 1_000_000
SMALL_ROWS = 10_000
WAVES = 30
TURNS = 3


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        environment = measured(root)
        place = locate_project(root)
        place.prepare()
        build(place.database, ROWS, root)
        return [
            *_commands(root, environment),
            *_waves(place.database),
            *_pruning(place.database),
        ]


def _commands(root: Path, environment: dict[str, str]) -> list[Row]:
    def run(*words: str) -> float:
        before = _children()
        command = [sys.executable, "-m", "cockpit", *words]
        subprocess.run(command, cwd=root, env=environment, check=True, stdout=subprocess.DEVNULL)
        return _children() - before

    run("journal", "-n", "1")
    first = run("metrics")
    began = time.perf_counter()
    whole = run("debug", "journal")
    waited = time.perf_counter() - began
    return [
        row("journal verify, 1,000,000 rows", waited, "s"),
        row("… in CPU", whole, "s CPU"),
        row("metrics", first, "s CPU"),
        row("doctor", run("doctor"), "s CPU", most=1.0),
    ]  # fmt: skip


def _waves(large: Path) -> list[Row]:
    """CPU of a wave on a new store, a small one and the large one, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "cockpit.db"
        build(small, SMALL_ROWS, Path(folder))
        took: dict[int, list[float]] = {SMALL_ROWS: [], ROWS: []}
        asyncio.run(wave._run(3))
        for _ in range(TURNS):
            for size, store in ((SMALL_ROWS, small), (ROWS, large)):
                took[size].append(asyncio.run(wave._run(WAVES, store=store)).ours)
    less, more = min(took[SMALL_ROWS]), min(took[ROWS])
    exponent = math.log(more / less) / math.log(ROWS / SMALL_ROWS)
    return [
        row(f"a wave on a store of {SMALL_ROWS:,} rows", less, "ms CPU"),
        row(f"a wave on a store of {ROWS:,} rows", more, "ms CPU"),
        row("growth exponent of a wave", exponent, "", most=0.1),
    ]


def _pruning(large: Path) -> list[Row]:
    size = large.stat().st_size
    result = _in_child(lambda: _prune(large))
    return [
        row("prune: rows deleted", result["rows"], ""),
        row("prune: all of it", result["cpu"], "s CPU"),
        row("prune: a transaction, p99", result["p99"] * 1000, "ms CPU", most=50),
        row("prune: the longest transaction", result["most"] * 1000, "ms CPU"),
        row("prune: memory", result["memory"], "MiB", most=200),
        row("prune: size of the file after / before", large.stat().st_size / size, "×", most=0.5),
    ]


def _prune(path: Path) -> dict[str, float]:
    took: list[float] = []

    class Timed(Store):
        def write_now(self, step: Callable[[Any], Any]) -> Any:
            began = time.thread_time()
            value = super().write_now(step)
            took.append(time.thread_time() - began)
            return value

    began = time.process_time()
    before = format_time(BEGAN + timedelta(days=365))
    with Timed.open(path) as store:
        pruned = prune_journal(store, before, fold_counts)
        free_pages(store)
    return {
        "rows": pruned.rows,
        "cpu": time.process_time() - began,
        "p99": at(0.99, took),
        "most": max(took),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _in_child(work: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Run ``work`` in a process of its own, so that its memory is its own."""
    with tempfile.NamedTemporaryFile() as answer:
        child = os.fork()
        if not child:
            try:
                Path(answer.name).write_text(json.dumps(work()))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            raise RuntimeError("pruning failed")
        result: dict[str, float] = json.loads(Path(answer.name).read_text())
        return result


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

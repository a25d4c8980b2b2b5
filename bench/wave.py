"""What the engine itself costs a wave, with a model that answers at once."""

from __future__ import annotations

import asyncio
import resource
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from measure import Row, row

from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import Limits, RuntimeSettings
from cockpit.store.db import database

WAVES = 60
FEW = 20
_TURN = """
[[turn]]
text = "Once more."
when = {{ wave = {wave} }}
[[turn.call]]
name = "request_context"
arguments = {{ purpose = "bench", question = "what?", scope = ["file:a.py:{wave}-{wave}"], escalation = "" }}
"""
_LAST = """
[[turn]]
when = {{ wave_from = {last} }}
[[turn.call]]
name = "finish"
arguments = {{ status = "done", summary = "done" }}
"""


def _write_scenario(waves: int) -> str:
    """Return a session of so many waves; equal calls would end it as stuck."""
    return "".join(_TURN.format(wave=wave) for wave in range(1, waves)) + _LAST.format(last=waves)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one wave: milliseconds of CPU of this process and of its programs, milliseconds of waiting."""

    ours: float
    theirs: float
    wall: float
    commits: float


def rows() -> list[Row]:
    """The table of this bench."""
    asyncio.run(_run(3))
    cost = asyncio.run(_run(WAVES))
    with _counted() as counts:
        few = asyncio.run(_run(FEW))
        after_few = counts["statements"]
        many = asyncio.run(_run(WAVES))
        more = counts["statements"] - 2 * after_few
    # A session's beginning and end cost the same in both.
    waves = WAVES - FEW
    commits = (many.commits * WAVES - few.commits * FEW) / waves
    return [
        row("engine overhead of a wave", cost.ours, "ms CPU", most=25),
        row("statements of a wave", more / waves, ""),
        row("commits (one fsync each) of a wave", commits, ""),
        row("the programs a wave runs (git)", cost.theirs, "ms CPU"),
        row("a wave with an instant model, whole", cost.wall, "ms"),
    ]


async def _run(count: int, store: Path | None = None) -> Cost:
    """The cost of one wave in a session of ``count``, on a copy of ``store`` (None: a new one)."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        (root / "a.py").write_text("".join(f"print({n})\n" for n in range(WAVES)), encoding="utf-8")
        script = Path(folder) / "scenario.toml"
        script.write_text(_write_scenario(count), encoding="utf-8")
        settings = RuntimeSettings(
            policy="all", limits=Limits(max_waves=count + 5), user_dir=Path(folder)
        )
        place = locate_project(root)
        if store is not None:
            place.prepare()
            shutil.copy(store, place.database)
        async with open_runtime(place, settings) as runtime:
            session_id = await runtime.start(
                "investigate", model=f"script:{script}", interactive=False
            )
            commits = runtime.store.commits
            cpu, wall = time.process_time(), time.perf_counter()
            children = _children()
            session = await runtime.run(session_id)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            children = _children() - children
            commits = runtime.store.commits - commits
            (made,) = await runtime.store.read(
                lambda connection: connection.execute(
                    "SELECT count(*) FROM wave_runs WHERE session_id=?", (session_id,)
                ).fetchone()
            )
    if session.result.get("status") != "done" or made != count:
        raise RuntimeError(f"the bench's session ended {session.result} after {made} waves")
    return Cost(1000 * cpu / count, 1000 * children / count, 1000 * wall / count, commits / count)


@contextmanager
def _counted() -> Iterator[dict[str, int]]:
    """Count the statements that this process gives to SQLite, each row of an ``executemany`` as one."""
    counts = {"statements": 0}

    class Counting(sqlite3.Connection):
        def execute(self, *values: Any) -> sqlite3.Cursor:
            counts["statements"] += 1
            return super().execute(*values)

        def executemany(self, sql: str, many: Any) -> sqlite3.Cursor:
            values = list(many)
            counts["statements"] += len(values)
            return super().executemany(sql, values)

    def connect(path: Path, **options: Any) -> sqlite3.Connection:
        return plain(path, **{**options, "factory": Counting})

    plain, database.connect = database.connect, partial(connect)
    try:
        yield counts
    finally:
        database.connect = plain


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

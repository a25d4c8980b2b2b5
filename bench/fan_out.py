"""What the fan-out itself costs a job, how near to ideal it keeps 128 observers busy, and what it costs
to store what they find."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from journal_latency import _session
from measure import Row, row

from cockpit.observe.fan_out import Job, run_jobs
from cockpit.observe.minhash_sketch import sketch_text
from cockpit.store.context import observation_jobs
from cockpit.store.context.facts import Fact, Level, ObservingWave
from cockpit.store.context.observation_jobs import JobResult, JobRow
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import waves

JOBS = 10_000
SOURCES = ("file", "search", "symbol", "diff")
QUOTAS = {"search": 64, "symbol": 32}
SLOW_JOBS = 2_560
SLOW_S = 0.02
AT_ONCE = 128


FACTS_A_JOB = 5
BATCH = 200
TURNS = 5


def rows() -> list[Row]:
    """The table of this bench."""
    asyncio.run(_cpu())
    cost = median(asyncio.run(_cpu()) for _ in range(5))
    # Another process can only make it worse: the best run is the one that tells of the fan-out.
    busy, bare = (max(shares) for shares in zip(*(_shares() for _ in range(8)), strict=True))
    return [
        row("fan-out of 10,000 no-op jobs, a job", cost, "µs CPU", most=15),
        row("fan-out of 20 ms jobs, share of ideal", busy, "", least=0.92),
        row("128 bare tasks that sleep as long, share of ideal", bare, ""),
        *_stored(),
    ]


def _ignore(number: int, outcome: object) -> None:
    """Where outcomes go that nobody wants."""


async def _cpu() -> float:
    async def nothing() -> None:
        return None

    made = [Job(SOURCES[n % len(SOURCES)], str(n), nothing) for n in range(JOBS)]
    started = time.process_time()
    await run_jobs(made, _ignore, limit=AT_ONCE, per_source=QUOTAS, timeout_s=10)
    return 1e6 * (time.process_time() - started) / JOBS


async def _busy() -> float:
    async def wait() -> None:
        await asyncio.sleep(SLOW_S)

    made = [Job("file", str(n), wait) for n in range(SLOW_JOBS)]
    started = time.perf_counter()
    await run_jobs(made, _ignore, limit=AT_ONCE, timeout_s=10)
    return (SLOW_JOBS / AT_ONCE * SLOW_S) / (time.perf_counter() - started)


def _shares() -> tuple[float, float]:
    """Of ours and of nothing but the event loop, in turns."""
    return asyncio.run(_busy()), asyncio.run(_bare())


async def _bare() -> float:
    async def wait() -> None:
        for _ in range(SLOW_JOBS // AT_ONCE):
            await asyncio.sleep(SLOW_S)

    started = time.perf_counter()
    await asyncio.gather(*(wait() for _ in range(AT_ONCE)))
    return (SLOW_JOBS / AT_ONCE * SLOW_S) / (time.perf_counter() - started)


def _stored() -> list[Row]:
    """50,000 facts of 10,000 jobs in batches, against the same rows by executemany in as many
    transactions, taking turns; the best of each, as another process can only make it worse."""
    planned = [
        JobRow(n + 1, "q", "file", f"file:src/m{n}.py", f"file:src/m{n}.py") for n in range(JOBS)
    ]
    found = [[_fact(n, part) for part in range(FACTS_A_JOB)] for n in range(JOBS)]
    stored, raw, settling = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(TURNS):
            ours, settled, content = _ours(Path(folder) / f"ours-{turn}.db", planned, found)
            stored.append(ours)
            settling.append(settled)
            raw.append(_raw(Path(folder) / f"raw-{turn}.db", content))
    count = JOBS * FACTS_A_JOB
    return [
        row(f"{count:,} facts of {JOBS:,} jobs in batches", min(stored), "s"),
        row("raw executemany of the same rows", min(raw), "s"),
        row("jobs and facts / raw executemany", min(stored) / min(raw), "×", most=1.2),
        row("closing: the cap, supersession, near-duplicates", min(settling), "s"),
    ]


def _ours(
    path: Path, planned: list[JobRow], found: list[list[Fact]]
) -> tuple[float, float, dict[str, list[Any]]]:
    with Store.open(path) as store:
        session_id = store.write_now(lambda tx: _session(tx, path.parent))
        wave = store.write_now(lambda tx: waves.create(tx, session_id=session_id, trace_id="t"))
        look = ObservingWave(session_id, wave.wave_id, 1, wave.pinned_now)
        todo = store.write_now(lambda tx: observation_jobs.plan(tx, wave.wave_id, planned))
        started = time.perf_counter()
        for first in range(0, JOBS, BATCH):
            ended = [
                JobResult(job, "done", facts, "", 3)
                for job, facts in zip(
                    todo[first : first + BATCH], found[first : first + BATCH], strict=True
                )
            ]
            store.write_now(
                lambda tx, e=ended: observation_jobs.record_results(tx, look, e, most=50_000)
            )
        took = time.perf_counter() - started
        started = time.perf_counter()
        store.write_now(lambda tx: observation_jobs.finish_wave(tx, look, most=50_000))
        settled = time.perf_counter() - started
        return took, settled, store.read_now(_content)


def _content(connection: sqlite3.Connection) -> dict[str, list[Any]]:
    return {
        table: connection.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()
        for table, order in (
            ("sessions", "1"),
            ("wave_runs", "1"),
            ("observed_facts", "rowid"),
            ("session_facts", "ordinal, position"),
            ("observation_jobs", "position"),
        )
    }


def _raw(path: Path, content: dict[str, list[Any]]) -> float:
    def insert(tx: Tx, table: str, values: list[Any]) -> None:
        marks = ",".join("?" * len(values[0]))
        tx.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)

    with Store.open(path) as store:
        for table in ("sessions", "wave_runs"):
            store.write_now(lambda tx, t=table: insert(tx, t, content[t]))

        def step(tx: Tx, first: int) -> None:
            at, to = first * FACTS_A_JOB, (first + BATCH) * FACTS_A_JOB
            insert(tx, "observed_facts", content["observed_facts"][at:to])
            insert(tx, "session_facts", content["session_facts"][at:to])
            insert(tx, "observation_jobs", content["observation_jobs"][first : first + BATCH])

        started = time.perf_counter()
        for first in range(0, JOBS, BATCH):
            store.write_now(lambda tx, f=first: step(tx, f))
        return time.perf_counter() - started


def _fact(number: int, part: int) -> Fact:
    line = number * FACTS_A_JOB + part
    text = f"def function_{line}(argument):\n    return argument + {line}\n" * 2
    path = f"src/m{number}.py"
    return Fact(
        "file",
        f"file:{path}:{line}-{line + 4}",
        "situational",
        Level(text, 32),
        Level(path, 8),
        provenance={"path": path, "lines": [line, line + 4], "level": "full"},
        dedupe_key=f"file:{path}:{line}@full",
        sketch=sketch_text(text),
    )

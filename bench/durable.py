"""What durability costs: a wave's transition against raw SQL, group commit, and fact ingest."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

from journal_latency import _session
from measure import Row, in_turns, row

from cockpit.store.context import facts
from cockpit.store.context.facts import Fact, Level
from cockpit.store.db.connection import connect
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import outbox, waves

TURNS = 300
CONCURRENT = 64
FACTS = 50_000
INGESTS = 5


def rows() -> list[Row]:
    """The table of this bench."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            *_transitions(Path(folder)),
            *asyncio.run(_grouped(Path(folder))),
            *_ingest(Path(folder)),
        ]


class _Recording(sqlite3.Connection):
    """Notes the statements that a transaction runs, so that a bare connection can run the same ones."""

    noted: ClassVar[list[tuple[Any, ...]]] = []

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        done = super().execute(sql, *parameters)
        if not sql.startswith("CREATE TEMP"):
            self.noted.append((sql, *parameters))
        return done


def _transitions(folder: Path) -> list[Row]:
    raw = _raw(folder / "raw.db")
    with Store.open(folder / "transitions.db") as store:
        session_id = store.write_now(lambda tx: _session(tx, folder))
    shutil.copy(folder / "transitions.db", folder / "bare.db")
    bare = connect(folder / "bare.db")
    noted = _Recording.noted
    numbers = iter(range(10_000))
    with (
        Store.open(folder / "transitions.db", factory=_Recording) as store,
        ThreadPoolExecutor(1) as other_thread,
    ):
        noted.clear()

        def ours() -> None:
            store.write_now(lambda tx: _turn(tx, session_id, next(numbers)))

        def plain() -> None:
            raw.execute("BEGIN IMMEDIATE")
            raw.execute("INSERT INTO a(x) VALUES ('one row of state')")
            raw.execute("UPDATE b SET x=x+1 WHERE id=1")
            raw.execute("INSERT INTO c(x) VALUES ('one row of a log')")
            raw.execute("COMMIT")

        def same() -> None:
            for statement in noted:
                bare.execute(*statement)
            noted.clear()

        def handed() -> None:
            other_thread.submit(plain).result()

        before = store.commits
        took = in_turns(TURNS, plain, ours, same, handed)
        commits = (store.commits - before) / (TURNS + 1)
        cpu = in_turns(TURNS, plain, ours, same, handed, clock=time.process_time)
    raw.close()
    bare.close()
    return [
        row("raw three-statement transaction", took[0] * 1000, "ms"),
        row("wave transition, outbox and journal", took[1] * 1000, "ms"),
        row("rate of transitions / raw rate", took[0] / took[1], "×", least=0.7),
        row("floor: the transition's own statements, bare", took[2] * 1000, "ms"),
        row("rate of transitions / rate of that floor", took[2] / took[1], "×"),
        row("raw transaction with a change of threads", took[3] * 1000, "ms"),
        row("raw three-statement transaction, CPU", cpu[0] * 1000, "ms CPU"),
        row("wave transition, CPU", cpu[1] * 1000, "ms CPU"),
        row("CPU of a raw transaction / of a transition", cpu[0] / cpu[1], "×"),
        row("the transition's own statements, bare, CPU", cpu[2] * 1000, "ms CPU"),
        row("raw transaction with a change of threads, CPU", cpu[3] * 1000, "ms CPU"),
        row("commits (one fsync each) a transition", commits, "", most=1.0),
    ]


def _raw(path: Path) -> sqlite3.Connection:
    raw = connect(path)
    for table in ("a", "b", "c"):
        raw.execute(f"CREATE TABLE {table}(id INTEGER PRIMARY KEY, x)")
    raw.execute("INSERT INTO b VALUES (1, 0)")
    return raw


def _turn(tx: Tx, session_id: str, number: int) -> None:
    """One durable step of a wave: its phase, an action that is planned and queued, and their journal rows."""
    wave = waves.find_latest_in(tx, session_id)
    if wave is None or wave.phase == "completed":
        wave = waves.create(tx, session_id=session_id, trace_id="t")
    phase = waves.PHASES[waves.PHASES.index(wave.phase) + 1]
    waves.advance(tx, wave.wave_id, phase)
    planned = outbox.plan(
        tx,
        wave_id=wave.wave_id,
        session_id=session_id,
        position=number,
        key=f"key-{number}",
        action_type="write_file",
        title="bench",
        payload={"path": "a", "content": "b"},
    )
    outbox.enqueue(tx, planned.action_id, proposal_id=None, payload=planned.payload)


async def _grouped(folder: Path) -> list[Row]:
    with Store.open(folder / "grouped.db") as store:
        ids = [await store.write(lambda tx: _session(tx, folder)) for _ in range(CONCURRENT)]
        before = store.commits

        async def drive(session_id: str) -> None:
            for number in range(6):
                await store.write(lambda tx, n=number: _turn(tx, session_id, hash((session_id, n))))

        started = time.perf_counter()
        await asyncio.gather(*(drive(session_id) for session_id in ids))
        took = time.perf_counter() - started
        commits = store.commits - before
    steps = CONCURRENT * 6
    return [
        row(f"{CONCURRENT} waves at once: commits a transition", commits / steps, "", most=0.5),
        row(f"{CONCURRENT} waves at once: transitions", steps / took, "/s"),
    ]


def _ingest(folder: Path) -> list[Row]:
    made = [_fact(number) for number in range(FACTS)]
    stored, bare = [], []
    for turn in range(INGESTS):
        with Store.open(folder / f"ingest-{turn}.db") as store:
            session_id = store.write_now(lambda tx: _session(tx, folder))
            wave = store.write_now(
                lambda tx, s=session_id: waves.create(tx, session_id=s, trace_id="t")
            )
            started = time.perf_counter()
            store.write_now(
                lambda tx, s=session_id, w=wave: facts.record(
                    tx,
                    session_id=s,
                    wave_id=w.wave_id,
                    ordinal=1,
                    pinned_now=w.pinned_now,
                    facts=made,
                )
            )
            stored.append(time.perf_counter() - started)
            content, links = store.read_now(_stored)
        with Store.open(folder / f"raw-{turn}.db") as store:
            store.write_now(lambda tx, s=session_id: _same_session(tx, folder, s))
            started = time.perf_counter()
            store.write_now(lambda tx, c=content, r=links: _raw_ingest(tx, c, r))
            bare.append(time.perf_counter() - started)
    # The best of each, taking turns: another process can only make it worse.
    return [
        row(f"ingest of {FACTS:,} facts", min(stored), "s"),
        row("raw executemany of the same rows", min(bare), "s"),
        row("ingest / raw executemany", min(stored) / min(bare), "×", most=1.2),
    ]


def _fact(number: int) -> Fact:
    text = f"def function_{number}(argument):\n    return argument + {number}\n" * 2
    return Fact(
        "file",
        f"file:src/module_{number % 500}.py:{number}-{number + 4}",
        "situational",
        Level(text, 32),
        Level(f"src/module_{number % 500}.py", 8),
        provenance={"path": f"src/module_{number % 500}.py", "lines": [number, number + 4]},
    )


def _stored(connection: sqlite3.Connection) -> tuple[list[tuple], list[tuple]]:
    return (
        connection.execute("SELECT * FROM observed_facts ORDER BY rowid").fetchall(),
        connection.execute("SELECT * FROM session_facts ORDER BY ordinal, position").fetchall(),
    )


def _raw_ingest(tx: Tx, content: list[tuple], links: list[tuple]) -> None:
    for table, values in (("observed_facts", content), ("session_facts", links)):
        marks = ",".join("?" * len(values[0]))
        tx.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)


def _same_session(tx: Tx, folder: Path, session_id: str) -> None:
    made = _session(tx, folder)
    tx.execute("UPDATE sessions SET session_id=? WHERE session_id=?", (session_id, made))

"""Every state of every table that work passes through is left by recovery.

A process is killed at the very commit after which a row first is in a state; then another one does what a
user would do next. In the end no row is in a state that is not an end, and everything happened once.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

from chains.batch_loop.coordinator_world import ChainWorld
from faults import session_trials
from faults.injected_faults import die_after_commit
from faults.session_trials import Child, Verdict, judge, run_session
from tasks.taskrun_world import AT_ONCE, PASSES, World, edit, finish

from cockpit.chains.watch_unattended import end_unattended
from cockpit.core.clock import RandomIds, SystemClock
from cockpit.core.project_paths import locate_project
from cockpit.store.backlog import tasks
from cockpit.store.chains import chains, workers
from cockpit.store.db.database import Store
from cockpit.store.journal import journal, verify_chain
from cockpit.tasks.task_context import WorkSettings

State = tuple[str, str, str]
"""A table, its column, and the value of a row that is in the state."""
SESSION_STATES: tuple[State, ...] = (
    *(("sessions", "status", state) for state in ("running", "waiting")),
    *(("wave_runs", "phase", state) for state in ("observing", "orienting", "deciding", "acting")),
    *(("context_requests", "status", state) for state in ("pending", "approved")),
    *(("outbox_actions", "phase", state) for state in ("planned", "queued", "dispatched")),
    ("observation_jobs", "status", "planned"),
    ("proposals", "status", "pending"),
)
CHAIN_STATES: tuple[State, ...] = (
    *(("chains", "status", state) for state in ("running", "draining")),
    ("chain_sessions", "status", "running"),
    *(("tasks", "status", state) for state in ("todo", "in_progress", "review")),
    *(("task_runs", "step", step) for step in ("implement", "test", "fix", "spec_review")),
    *(("task_runs", "step", step) for step in ("quality_review", "merge")),
    *(("worktrees", "status", state) for state in ("active", "merged")),
    ("task_leases", "owner", "ch-1/s1"),
)
STATES = (*CHAIN_STATES, *SESSION_STATES)
ENDS = {
    "sessions": ("status", "completed"),
    "wave_runs": ("phase", "completed"),
    "context_requests": ("status", "fetched"),
    "outbox_actions": ("phase", "confirmed"),
    "observation_jobs": ("status", "done"),
    "proposals": ("status", "approved"),
    "tasks": ("status", "done"),
}
"""The state of all rows of these tables after recovery."""
_REPAIRED_LATER = (
    edit("implementer", "a - b", "a * b")
    + finish("implementer", "Multiplied.", when='called = ["edit_file"]')
    + edit("fixer", "a * b", "a + b")
    + finish("fixer", "Mended.", when='called = ["edit_file"]')
    + PASSES
)
"""Its tests fail first, so that a fixer has its turn."""


def try_state(template: session_trials.World, folder: Path, state: State) -> Verdict:
    """Kill a process in the state, let another one recover, and judge what is there then."""
    try:
        if state in CHAIN_STATES:
            verdict = _try_chain(folder, state)
        else:
            verdict = _try_session(template.copy(folder), state)
    except AssertionError as error:
        return Verdict(stranded=[str(error)])
    if verdict:
        shutil.rmtree(folder)
    return verdict


def _try_session(world: session_trials.World, state: State) -> Verdict:
    world.use_state()
    database = locate_project(world.root).database
    _kill_in(world, database, state, run_session(world))
    code, words, _ = Child.start(world, lambda: run_session(world)).wait()
    assert code == 0, words
    verdict = judge(world)
    verdict.stranded += _list_unfinished(database)
    return verdict


def _try_chain(folder: Path, state: State) -> Verdict:
    world = session_trials.World(folder)
    folder.mkdir()
    world.use_state()
    project = World.made(folder)
    project.store.close()
    database = project.place.database
    scenario = _REPAIRED_LATER if state[2] == "fix" else AT_ONCE
    work = _play_chain(folder, 1, scenario, drains=state[2] == "draining")
    _kill_in(world, database, state, work)
    with Store.open(database) as store:
        # The next command of any kind.
        end_unattended(store)
        has_begun = store.read_now(chains.select)
        assert all(chain.status in chains.ENDED for chain in has_begun), has_begun
        rows = store.read_now(lambda seen: workers.select_for_chain(seen, "ch-1"))
        assert all(row.status != "running" for row in rows), rows
    next_work = _play_chain(folder, 2 if has_begun else 1, scenario)
    code, words, _ = Child.start(world, lambda: next_work).wait()
    next_work.close()
    assert code == 0, words
    verdict = Verdict(stranded=_list_unfinished(database))
    with Store.open(database) as store:
        if not store.read_now(verify_chain.verify).ok:
            verdict.lost.append("the journal does not verify")
        rows = store.read_now(lambda seen: journal.rows(seen, limit=100_000))
        merges = sum(
            row.action == "task.run.step" and row.raw_detail()["outcome"] == "merged"
            for row in rows
        )
        if merges != 1:
            (verdict.doubled if merges else verdict.lost).append(f"the merge, {merges} times")
    return verdict


def _kill_in(
    world: session_trials.World, database: Path, state: State, work: Coroutine[Any, Any, None]
) -> None:
    async def doomed() -> None:
        die_after_commit(_look_for(database, state))
        await work

    code, words, _ = Child.start(world, doomed).wait()
    work.close()
    assert code == -signal.SIGKILL, f"it was not killed in {state}: {code} {words}"


def _look_for(database: Path, state: State) -> Callable[[], bool]:
    table, column, value = state
    query = f"SELECT 1 FROM {table} WHERE {column}=?"
    query += " AND outcome IS NULL LIMIT 1" if table == "task_runs" else " LIMIT 1"

    def look() -> bool:
        with closing(sqlite3.Connection(os.fspath(database))) as connection:
            return connection.execute(query, (value,)).fetchone() is not None

    return look


def _list_unfinished(database: Path) -> list[str]:
    unfinished = []
    with closing(sqlite3.connect(database)) as connection:
        for table, (column, end) in ENDS.items():
            rows = connection.execute(f"SELECT {column} FROM {table} WHERE {column}<>?", (end,))
            unfinished += [f"{table} has a row that is {state}" for (state,) in rows]
        leases = connection.execute("SELECT * FROM task_leases").fetchall()
    return unfinished + [f"a lease is left: {lease}" for lease in leases]


async def _play_chain(folder: Path, ordinal: int, scenario: str, *, drains: bool = False) -> None:
    """Do the backlog's one task as worker ``ordinal`` of a chain, in this process."""
    root = folder / "calc"
    place = locate_project(root)
    with Store.open(place.database, SystemClock(), RandomIds()) as store:
        world = World(folder, root, place, store, WorkSettings(test_command="python3 -m unittest"))
        played = ChainWorld(world)
        if ordinal == 1:
            if not store.read_now(tasks.select):
                world.task()
            chain = played.chain()
        else:
            chain = store.write_now(lambda tx: chains.resume(tx, "ch-1"))
            chain = store.write_now(lambda tx: chains.acquire(tx, "ch-1"))
        if drains:
            store.write_now(lambda tx: chains.drain(tx, "ch-1"))
        await played.session(chain, ordinal, scenario=scenario)
        store.write_now(lambda tx: chains.end(tx, "ch-1", "completed", ""))

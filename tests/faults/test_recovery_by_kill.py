"""Every state of every table that work passes through is left by recovery.

A process is killed at the very commit after which a row first is in a state; then another one does what a
user would do next. In the end no row is in a state that is not an end, and everything happened once.
``tests/store/test_recovery_of_states.py`` holds the list of states against the schema.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from chains.batch_loop.coordinator_world import ChainWorld
from faults import session_trials
from faults.session_trials import Child, judge, load_everything, make_world, run_session
from tasks.taskrun_world import AT_ONCE, PASSES, World, edit, finish

from cockpit.chains.watch_dead_chains import close_chains_seen_dead
from cockpit.core.clock import RandomIds, SystemClock
from cockpit.core.project_paths import locate_project
from cockpit.store.backlog import tasks
from cockpit.store.chains import chains, workers
from cockpit.store.db.database import Store
from cockpit.store.db.keep_anchor import StoreAnchor
from cockpit.store.journal import journal, verify_chain
from cockpit.tasks.task_context import WorkSettings

pytestmark = pytest.mark.slow

SESSION_STATES = (
    *(("sessions", "status", state) for state in ("running", "waiting")),
    *(("wave_runs", "phase", state) for state in ("created", "observing", "orienting", "deciding")),
    *(("wave_runs", "phase", state) for state in ("acting", "learning")),
    *(("context_requests", "status", state) for state in ("pending", "approved")),
    *(("outbox_actions", "phase", state) for state in ("planned", "queued", "dispatched")),
    ("observation_jobs", "status", "planned"),
    ("proposals", "status", "pending"),
)
CHAIN_STATES = (
    *(("chains", "status", state) for state in ("running", "draining")),
    ("chain_sessions", "status", "running"),
    *(("tasks", "status", state) for state in ("todo", "in_progress", "review")),
    *(("task_runs", "step", step) for step in ("implement", "test", "fix", "spec_review")),
    *(("task_runs", "step", step) for step in ("quality_review", "merge")),
    *(("worktrees", "status", state) for state in ("active", "merged")),
    ("task_leases", "owner", "ch-1/s1"),
)
NEVER_STANDS = {("wave_runs", "phase", "created"), ("wave_runs", "phase", "learning")}
"""States that no process leaves behind, because the transaction that enters them leaves them as well."""
ENDS = {
    "sessions": ("status", "completed"),
    "wave_runs": ("phase", "completed"),
    "context_requests": ("status", "fetched"),
    "outbox_actions": ("phase", "confirmed"),
    "observation_jobs": ("status", "done"),
    "proposals": ("status", "approved"),
    "tasks": ("status", "done"),
    "worktrees": ("status", "removed"),
}
"""The state of all rows of these tables after recovery."""


def die_in(database: Path, table: str, column: str, state: str) -> Callable[[], None]:
    """Kill this process after the first commit that leaves a row of the table in the state."""
    query = f"SELECT 1 FROM {table} WHERE {column}=?"
    query += " AND outcome IS NULL LIMIT 1" if table == "task_runs" else " LIMIT 1"

    def install() -> None:
        keep = StoreAnchor.keep

        @cache
        def connection() -> sqlite3.Connection:
            """One for all commits: what a connection first reads, the schema, takes longer than the look."""
            return sqlite3.connect(database, check_same_thread=False)

        def look(self: StoreAnchor) -> None:
            if connection().execute(query, (state,)).fetchone():
                os.kill(os.getpid(), signal.SIGKILL)
            keep(self)

        StoreAnchor.keep = look  # type: ignore[method-assign]  # of this forked process alone

    return install


def killed_in(
    world: session_trials.World,
    place: Path,
    state: tuple[str, str, str],
    work: Callable[[], Coroutine[Any, Any, None]],
) -> bool:
    """Do ``work`` in a process that dies in the state; whether it did."""

    async def doomed() -> None:
        die_in(place, *state)()
        await work()

    code, words, _ = Child.start(world, doomed).wait()
    assert code in (0, -signal.SIGKILL), words
    return code == -signal.SIGKILL


def unfinished(database: Path) -> dict[str, list[str]]:
    """Rows that are not in the state in which their table's rows end."""
    left = {}
    with closing(sqlite3.connect(database)) as connection:
        for table, (column, end) in ENDS.items():
            rows = connection.execute(f"SELECT {column} FROM {table} WHERE {column}<>?", (end,))
            if states := [state for (state,) in rows]:
                left[table] = states
        for table in ("task_leases",):
            if rows := connection.execute(f"SELECT * FROM {table}").fetchall():
                left[table] = [str(row) for row in rows]
    return left


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> session_trials.World:
    load_everything()
    return make_world(tmp_path_factory.mktemp("template"))


@pytest.mark.parametrize("state", SESSION_STATES, ids=lambda state: f"{state[0]}-{state[2]}")
def test_a_session_that_dies_in_a_state_is_brought_to_its_end(
    template: session_trials.World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: tuple[str, str, str],
) -> None:
    monkeypatch.setenv("COCKPIT_STATE_DIR", str(tmp_path / "world" / "state"))
    world = template.copy(tmp_path / "world")
    database = locate_project(world.root).database
    died = killed_in(world, database, state, lambda: run_session(world))
    assert died == (state not in NEVER_STANDS)
    code, words, _ = Child.start(world, lambda: run_session(world)).wait()
    assert code == 0, words
    verdict = judge(world)
    assert verdict, verdict
    assert unfinished(database) == {}


MENDED_LATER = (
    edit("implementer", "a - b", "a * b")
    + finish("implementer", "Multiplied.", when='called = ["edit_file"]')
    + edit("fixer", "a * b", "a + b")
    + finish("fixer", "Mended.", when='called = ["edit_file"]')
    + PASSES
)
"""Its tests fail first, so that a fixer has its turn."""


async def play_chain(folder: Path, ordinal: int, scenario: str, *, drains: bool = False) -> None:
    """Do the backlog's one task as worker ``ordinal`` of a chain, in this process."""
    root = folder / "calc"
    place = locate_project(root)
    with Store.open(place.database, SystemClock(), RandomIds()) as store:
        world = World(folder, root, place, store, WorkSettings(test_command="python3 -m unittest"))
        made = ChainWorld(world)
        if ordinal == 1:
            if not store.read_now(tasks.select):
                world.task()
            chain = made.chain()
        else:
            chain = store.write_now(lambda tx: chains.resume(tx, "ch-1"))
            chain = store.write_now(lambda tx: chains.acquire(tx, "ch-1"))
        if drains:
            store.write_now(lambda tx: chains.drain(tx, "ch-1"))
        await made.session(chain, ordinal, scenario=scenario)
        store.write_now(lambda tx: chains.end(tx, "ch-1", "completed", ""))


@pytest.mark.parametrize("state", CHAIN_STATES, ids=lambda state: f"{state[0]}-{state[2]}")
def test_a_chain_that_dies_in_a_state_is_brought_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: tuple[str, str, str]
) -> None:
    monkeypatch.setenv("COCKPIT_STATE_DIR", str(tmp_path / "state"))
    load_everything()
    made = World.made(tmp_path)
    made.store.close()
    database = made.place.database
    scenario = MENDED_LATER if state[2] == "fix" else AT_ONCE
    world = session_trials.World(tmp_path)
    work = play_chain(tmp_path, 1, scenario, drains=state[2] == "draining")
    assert killed_in(world, database, state, lambda: work)
    work.close()
    with Store.open(database) as store:
        # The next command of any kind.
        ended = close_chains_seen_dead(store)
        has_begun = store.read_now(chains.select)
        assert len(ended) == len(has_begun)
        assert all(chain.status in chains.ENDED for chain in has_begun)
        if has_begun:
            rows = store.read_now(lambda seen: workers.select_for_chain(seen, "ch-1"))
            assert all(row.status != "running" for row in rows)
        assert not store.read_now(lambda seen: seen.execute("SELECT 1 FROM task_leases").fetchone())
    next_work = play_chain(tmp_path, 2 if has_begun else 1, scenario)
    code, words, _ = Child.start(world, lambda: next_work).wait()
    next_work.close()
    assert code == 0, words
    assert [row for row in unfinished(database) if row not in ("worktrees",)] == []
    with Store.open(database) as store:
        assert store.read_now(verify_chain.verify).ok
        merged = [row for row in made_rows(store) if row.action == "worktree.merged"]
        assert len(merged) == 1


def made_rows(store: Store) -> list[journal.Row]:
    return store.read_now(lambda seen: journal.rows(seen, limit=100_000))


def test_every_state_that_needs_recovery_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The states that this module kills in, and those that a fault leaves, are all that are not ends."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "store"))
    from test_recovery_of_states import END, WAYS_ON

    killed = {
        (f"{table}.{column}", state) for table, column, state in (*SESSION_STATES, *CHAIN_STATES)
    }
    open_states = {
        (column, state)
        for column, ways in WAYS_ON.items()
        for state, way in ways.items()
        if way != END
    }
    assert {f"{column} {state}" for column, state in open_states - killed} == LEFT_BY_FAULTS


LEFT_BY_FAULTS = {
    # Left by a process that goes on: an error, a stop, a reviewer, the user. None is at work in them.
    *("sessions.status stopped", "sessions.status failed", "wave_runs.phase failed_retryable"),
    *("outbox_actions.phase failed_retryable", "outbox_actions.phase uncertain"),
    *("profile_change_proposals.status pending", "tasks.status blocked"),
    *("worktrees.status conflict", "worktrees.status kept"),
    # Rules that hold, or that one pushback took out: each change of them is one transaction.
    *(f"trust_rules.status {state}" for state in ("active", "suspended", "revoked")),
    # Epics and stories have the states of their tasks; no process works on them.
    *(f"{table}.status {state}" for table in ("epics", "stories")
      for state in ("todo", "in_progress", "review", "blocked")),
}  # fmt: skip
"""They wait for the user, or for the next start; see ``tests/act/test_act_crash.py``."""

"""A chain whose processes all died is closed by whatever runs next, screens and servers included."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from chains.chain_world import Chains
from chains.new_chain import create_chain_row
from state_for_tests import state_of
from tasks.taskrun_world import World

from cockpit.access import user_presence
from cockpit.app.application import CockpitApp
from cockpit.chains import watch_unattended
from cockpit.chains.supervisor import REASON
from cockpit.chains.watch_unattended import end_unattended, watching_unattended
from cockpit.core import processes
from cockpit.core.clock import FixedClock, RandomIds
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.chains import chains, task_leases, workers
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

pytestmark = pytest.mark.slow

DEAD = "999999999/1"
"""A process that no machine has."""


def leave_dead_chain(tx: Tx) -> None:
    """A chain at work whose supervisor and worker are gone, as a machine that lost its power leaves it."""
    chain = create_chain_row(tx)
    worker = workers.start(tx, chain, 1, token_limit=100)
    task_leases.acquire(tx, "T-1", worker.owner)
    for table, column in (("chains", "owner"), ("chain_sessions", "process")):
        tx.execute(f"UPDATE {table} SET {column}=?", (DEAD,))
    tx.execute("UPDATE task_leases SET process=?", (DEAD,))


def statuses(store: Store) -> list[tuple[str, str]]:
    return [(each.status, each.reason) for each in store.read_now(chains.select)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.made(tmp_path)
    made.task()
    yield made
    made.store.close()


def test_whatever_runs_next_closes_it(tmp_path: Path) -> None:
    project = Chains.made(tmp_path, 1).project
    model = project.script('[[turn]]\ntext = "Seen."\n')
    with Store.open(state_of(project.root) / "cockpit.db") as store:
        store.write_now(leave_dead_chain)
        project.run("run", "Look around", "--model", model, expect=4)
        assert statuses(store) == [("failed", REASON)]
        (worker,) = store.read_now(lambda seen: workers.select_for_chain(seen, "ch-1"))
        assert worker.status == "crashed"
        leases = store.read_now(lambda seen: seen.execute("SELECT * FROM task_leases").fetchall())
        assert leases == []


async def test_a_server_closes_one_that_dies_while_it_runs(world: World) -> None:
    with Store.open(world.place.database, FixedClock(), RandomIds()) as store:
        async with watching_unattended(store):
            await asyncio.sleep(0)
            store.write_now(leave_dead_chain)
            while statuses(store) != [("failed", REASON)]:
                await asyncio.sleep(0)


async def test_the_screen_closes_it_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_unattended, "LOOK_S", 0.01)
    settings = RuntimeSettings(user_dir=world.folder / "config")
    async with open_runtime(world.place, settings) as runtime:
        app = CockpitApp(runtime)
        async with app.run_test() as pilot:
            world.store.write_now(leave_dead_chain)
            while not app._notifications:
                await pilot.pause()
            (said,) = [each.message for each in app._notifications]
            assert said == f"ch-1 has ended: {REASON}. `cockpit work --continue` resumes it."
    assert statuses(world.store) == [("failed", REASON)]


@pytest.mark.parametrize(("hides", "closed"), [(True, []), (False, ["ch-1"])])
def test_below_an_agent_only_what_sees_all_processes_closes_it(
    world: World, monkeypatch: pytest.MonkeyPatch, hides: bool, closed: list[str]
) -> None:
    world.store.write_now(leave_dead_chain)
    monkeypatch.setattr(user_presence, "find_agent", lambda **_: "below an agent")
    monkeypatch.setattr(processes, "sees_all_processes", lambda: not hides)
    assert [chain.chain_id for chain in end_unattended(world.store)] == closed

"""Beginning a chain, going on with it, and watching over processes that do not do as they should."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tasks.taskrun_world import World, git

from cockpit.chains.create_chain import ChainOptions, ChainRefused, create_chain, resume_chain
from cockpit.chains.decide_next_worker import chain_usage, worker_limits
from cockpit.chains.supervisor import Supervision, supervise
from cockpit.core.clock import FixedClock, RandomIds
from cockpit.core.processes import is_process_alive
from cockpit.store.chains import chains, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker
from cockpit.store.db.database import Store
from cockpit.tasks.git import WorktreeError

pytestmark = pytest.mark.slow


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.made(tmp_path)
    yield made
    made.store.close()


async def test_a_chain_that_used_up_its_sessions_is_given_more(world: World) -> None:
    world.task()
    made = await create_chain(
        world.store, world.place, ChainOptions("all", max_chains=1, max_cost=3.0)
    )
    assert made.base_branch == "main"
    assert world.tree("ch-1").branch == made.branch == "cockpit/ch-1"
    world.store.write_now(lambda tx: workers.start(tx, made, 1, token_limit=100))
    world.store.write_now(lambda tx: workers.end(tx, made, 1, "clean", "pressure"))
    world.store.write_now(lambda tx: chains.end(tx, "ch-1", "limited", "after 1 worker"))

    def again(**replaced: Any) -> Chain:
        return world.store.write_now(lambda tx: resume_chain(tx, "ch-1", replaced, more_workers=4))

    more = again()
    assert (more.status, more.max_chains, more.max_cost) == ("running", 5, 3.0)
    with pytest.raises(ChainRefused, match="its limit of 0 seconds"):
        again(max_wall_s=0.0)
    used = world.store.read_now(lambda found: chain_usage(found, more))
    assert used.workers == 1
    assert worker_limits(more, used, tokens=9).cost_usd == 3.0
    assert worker_limits(replace(more, max_cost=None), used, tokens=9).cost_usd is None


async def test_a_branch_of_that_name_is_left_alone(world: World) -> None:
    world.task()
    git(world.root, "branch", "cockpit/ch-1")
    made = await create_chain(
        world.store, world.place, ChainOptions("all", model="script:scenario.toml")
    )
    assert made.branch == "cockpit/ch-1-2"
    assert world.tree("ch-1-2").status == "active"
    assert made.model == f"script:{Path.cwd() / 'scenario.toml'}"


SILENT = (
    "import sys; from pathlib import Path; from cockpit.store.db.database import Store;"
    "from cockpit.store.chains import chains, workers;"
    "s = Store.open(Path(sys.argv[1]));"
    "chain = s.read_now(lambda found: chains.load(found, 'ch-1'));"
    "s.write_now(lambda tx: workers.start(tx, chain, int(sys.argv[-1]), token_limit=9));"
    "import time; time.sleep(600)"
)
"""It begins as a session, and is never heard of again."""


class HeardClock(FixedClock):
    """Time that passes only while a session of the chain runs, a second at each look, or one has to wait."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    async def sleep(self, seconds: float) -> None:
        is_running = any(one.status == "running" for one in sessions_of(self._world))
        await asyncio.sleep(0.001 if is_running else 0.02)
        if is_running:
            self.advance(1.0)
        elif self._world.rows("chain.delayed"):
            self.advance(seconds)


async def watched(world: World, store: Store, stop_after: int) -> Chain:
    """The end of a chain of such sessions, which is stopped at once when there are so many."""
    world.task()
    made = await create_chain(world.store, world.place, ChainOptions("all"))
    argv = (sys.executable, "-c", SILENT, str(world.place.database))
    watching = asyncio.ensure_future(
        supervise(Supervision(store, world.place, os.environ, argv), made.chain_id)
    )
    while len(sessions_of(world)) < stop_after:
        await asyncio.sleep(0.01)
    world.store.write_now(lambda tx: chains.drain(tx, "ch-1", now=True))
    return await watching


def sessions_of(world: World) -> list[Worker]:
    return world.store.read_now(lambda found: workers.select_for_chain(found, "ch-1"))


async def test_a_session_that_does_not_stop_is_killed_when_it_must(world: World) -> None:
    with Store.open(world.place.database, HeardClock(world), RandomIds()) as store:
        ended = await watched(world, store, 1)
    assert (ended.status, ended.reason) == ("stopped", "stopped at once")
    (one,) = sessions_of(world)
    assert (one.status, one.reason) == ("crashed", "its process is gone")


async def test_a_session_that_is_silent_for_too_long_is_killed(world: World) -> None:
    with Store.open(world.place.database, HeardClock(world), RandomIds()) as store:
        await watched(world, store, 2)
    silent, _ = sessions_of(world)
    assert (silent.status, silent.reason) == ("crashed", "it was silent for 300 s")
    assert not is_process_alive(silent.process)


async def test_a_chain_whose_branch_cannot_be_made_has_ended(world: World) -> None:
    world.task()
    for name in ("cockpit", "cockpit-work"):  # git then makes no branch below either
        git(world.root, "branch", name)
    with pytest.raises(WorktreeError):
        await create_chain(world.store, world.place, ChainOptions("all"))
    left = world.store.read_now(lambda found: chains.load(found, "ch-1"))
    assert left.status == "failed" and left.reason.startswith("it could not begin: ")
    assert world.tree("ch-1").status == "removed"

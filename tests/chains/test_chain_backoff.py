"""What crashes starts again after a pause that grows and is bounded, by the clock, journalled and shown."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from chains.batch_loop.coordinator_world import ALL_PASS, ChainWorld
from hypothesis import given
from hypothesis import strategies as st
from tasks.taskrun_world import World

from cockpit.app.state.chain_trees import Trees
from cockpit.app.state.chains import Chains, read_chains
from cockpit.app.state.work import Work
from cockpit.chains import supervisor
from cockpit.chains.create_chain import ChainOptions, create_chain
from cockpit.chains.progress_lines import ProgressLines
from cockpit.chains.supervisor import MAX_FAILED_STARTS, Supervision, log_path, supervise
from cockpit.core.clock import FixedClock, RandomIds, format_time
from cockpit.loop.runtime_settings import RunnerSettings, RuntimeSettings
from cockpit.store.chains import chains, workers
from cockpit.store.chains.retry_delays import (
    FIRST_S,
    LONGEST_S,
    retry_delay,
    seconds_until,
    start_after,
)
from cockpit.store.db.database import Store
from cockpit.store.journal import journal

pytestmark = pytest.mark.slow

NOW = datetime(2027, 1, 1, tzinfo=UTC)


class Watched(FixedClock):
    """A clock that stands still but for pauses, and notes how long each stretch of them was."""

    def __init__(self) -> None:
        super().__init__()
        self.slept = 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds
        await asyncio.sleep(0.01)
        self.advance(seconds)


@given(st.integers(-5, 10**9))
def test_the_pause_grows_and_is_bounded(failures: int) -> None:
    pause = retry_delay(failures)
    assert 0.0 <= pause <= LONGEST_S
    assert (pause == 0.0) == (failures < 1)
    assert retry_delay(failures + 1) in (2 * pause or FIRST_S if failures >= 0 else 0.0, LONGEST_S)


@given(st.timedeltas(timedelta(days=-400), timedelta(days=400)))
def test_a_clock_that_is_set_back_makes_no_pause_longer(change: timedelta) -> None:
    starts_at = start_after(format_time(NOW), 3)
    assert 0.0 <= seconds_until(starts_at, NOW + change) <= LONGEST_S


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.made(tmp_path)
    made.task()
    yield made
    made.store.close()


def rows(store: Store) -> list[journal.Row]:
    return store.read_now(lambda seen: journal.rows(seen, limit=100_000))


async def supervised(world: World, program: str) -> tuple[Watched, Store, chains.Chain]:
    clock = Watched()
    store = Store.open(world.place.database, clock, RandomIds())
    await create_chain(store, world.place, ChainOptions("all"))
    argv = (sys.executable, "-c", program, str(world.place.database))
    ended = await supervise(Supervision(store, world.place, os.environ, argv), "ch-1")
    return clock, store, ended


async def test_workers_that_cannot_start_are_tried_ever_later(world: World) -> None:
    clock, store, ended = await supervised(world, "print('no room'); raise SystemExit(1)")
    with store:
        delayed = [row.raw_detail() for row in rows(store) if row.action == "chain.delayed"]
    assert ended.status == "failed"
    assert [row["delay_s"] for row in delayed] == [2.0, 4.0][: MAX_FAILED_STARTS - 1]
    assert all("no room" in row["reason"] for row in delayed)
    assert "could not start: " in ended.reason
    assert ended.reason.count("no room") == MAX_FAILED_STARTS
    assert log_path(world.place, "ch-1", 1).exists()
    assert clock.slept >= 6.0


@pytest.mark.parametrize(
    ("number", "status", "reason"),
    [
        (errno.EAGAIN, "stopped", "machine: Resource temporarily unavailable"),
        (errno.ENOEXEC, "failed", "its workers could not start: [Errno 8] Exec format error"),
    ],
)
async def test_a_chain_whose_workers_the_system_refuses_to_start_ends(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int, status: str, reason: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    refusing = SimpleNamespace(Popen=refuse, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(supervisor, "subprocess", refusing)
    clock, store, ended = await supervised(world, "")
    store.close()
    assert (ended.status, ended.reason) == (status, reason)
    assert clock.slept >= 6.0


async def test_a_chain_that_waits_is_stopped_at_once(world: World) -> None:
    clock = Watched()
    with Store.open(world.place.database, clock, RandomIds()) as store:
        chain = await create_chain(store, world.place, ChainOptions("all"))
        for ordinal in (1, 2, 3):
            store.write_now(lambda tx, at=ordinal: workers.start(tx, chain, at, token_limit=9))
            store.write_now(lambda tx, at=ordinal: workers.record_crash(tx, chain, at, "it died"))
        watch = Supervision(store, world.place, os.environ, (sys.executable, "-c", "exit(1)"))
        watching = asyncio.ensure_future(supervise(watch, "ch-1"))
        while not any(row.action == "chain.delayed" for row in rows(store)):
            await asyncio.sleep(0)
        store.write_now(lambda tx: chains.drain(tx, "ch-1"))
        ended = await watching
    assert (ended.status, ended.reason) == ("stopped", "drained")
    assert clock.slept < retry_delay(3)


CRASHES = RunnerSettings("small", (sys.executable, "-c", "raise SystemExit(7)"))
"""An external agent that ends without a word."""


async def test_an_agent_that_crashes_waits_before_it_starts_again(tmp_path: Path) -> None:
    world = World.made(tmp_path)
    world.store.close()
    clock = Watched()
    world.store = Store.open(world.place.database, clock, RandomIds())
    with world.store:
        chained = ChainWorld(world)
        chained.green()
        first, second = chained.tasks(2)
        chain = chained.chain(batch="1")
        settings = RuntimeSettings(
            user_dir=tmp_path / "config", environment=dict(os.environ), runners={"small": CRASHES}
        )
        task_context = chained.task_context(chain, 1, ALL_PASS, runner="small", settings=settings)
        ended = await chained.session(chain, task_context=task_context)
        delayed = [row.raw_detail() for row in chained.rows("chain.delayed")]
        assert chained.statuses() == {first: "blocked", second: "blocked"}
        assert ended.reason == "empty"
        for task_id in (first, second):
            mine = [row for row in delayed if row["task_id"] == task_id]
            assert [(row["step"], row["delay_s"], row["attempt"]) for row in mine] == [
                ("implement", 2.0, 2),
                ("implement", 4.0, 3),
            ]
            assert "exit code 7" in mine[0]["reason"]
        started = [r for r in chained.rows("batch.changed") if not r.raw_detail()["outcome"]]
        for row in chained.rows("chain.delayed"):
            task_id, starts_at = row.raw_detail()["task_id"], row.raw_detail()["starts_at"]
            after = [
                each.at
                for each in started
                if each.seq > row.seq and task_id in each.raw_detail()["task_ids"]
            ]
            assert min(after) >= starts_at
        assert clock.slept >= 6.0


async def test_the_pause_is_shown_in_words_and_ends_with_it(world: World) -> None:
    store = world.store
    chain = await create_chain(store, world.place, ChainOptions("all"))
    for ordinal in (1, 2):
        store.write_now(lambda tx, at=ordinal: workers.start(tx, chain, at, token_limit=9))
        store.write_now(lambda tx, at=ordinal: workers.record_crash(tx, chain, at, "it died"))
    watch = Supervision(store, world.place, os.environ, (sys.executable, "-c", "exit(1)"))
    watching = asyncio.ensure_future(supervise(watch, "ch-1"))
    while not any(row.action == "chain.delayed" for row in rows(store)):
        await asyncio.sleep(0.01)
    (delayed,) = (row for row in rows(store) if row.action == "chain.delayed")
    watching.cancel()
    line = ProgressLines("ch-1").line_for(delayed)
    assert line is not None
    assert line.line == "◌ s3 starts again in 4 s; third try"
    begun = datetime.fromisoformat(delayed.raw_detail()["starts_at"]) - timedelta(seconds=3)
    for now, words in ((begun, "starts again in 3 s; third try"), (begun + timedelta(5), "")):
        shown = Chains(store.read_now(lambda c, now=now: read_chains(c, now)))
        (head, *_) = Trees().rows(shown, Work(), now=now)
        assert head.state == words  # type: ignore[union-attr]
        assert shown.has_retries == bool(words)
    store.write_now(lambda tx: workers.start(tx, chain, 3, token_limit=9))
    assert not Chains(store.read_now(lambda c: read_chains(c, begun))).has_retries
    await asyncio.gather(watching, return_exceptions=True)

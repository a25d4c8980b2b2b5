"""What a chain's records keep to, and what follows each of its sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chains.new_chain import create_chain_row
from msgspec.structs import asdict, replace
from tasks.taskrun_world import World

from cockpit.backlog import service
from cockpit.chains.decide_next_worker import MAX_CRASHES, ChainUsage, decide_from
from cockpit.chains.supervisor import close_dead_chains, find_dead_chains, mark_dead_workers
from cockpit.core.clock import FixedClock, RandomIds, format_time
from cockpit.core.errors import IllegalTransition, NotFound, Stale
from cockpit.store.chains import chains, task_leases, task_runs, workers
from cockpit.store.chains.chains import Chain
from cockpit.store.chains.workers import Worker
from cockpit.store.db.database import Store

NOTHING = ChainUsage(0, 0, 0.0, 0.0)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.made(tmp_path)
    yield made
    made.store.close()


def chain(store: Store, **changed: Any) -> Chain:
    return store.write_now(lambda tx: create_chain_row(tx, **{"max_chains": 3, **changed}))


def started(world: World, made: Chain, ordinal: int) -> Worker:
    return world.store.write_now(lambda tx: workers.start(tx, made, ordinal, token_limit=100))


def session(ordinal: int, status: str, reason: str, at: str = "2027-01-01") -> Worker:
    return Worker("ch-1", ordinal, "1/1", status, reason, 0, 100, 0.0, 0.0, 1, at, at, at)


def test_chains_are_numbered_and_their_branches_are_free(world: World) -> None:
    taken = ("cockpit/ch-2", "cockpit/ch-2-2")
    assert chain(world.store).branch == "cockpit/ch-1"
    second = chain(world.store, taken=taken)
    assert (second.chain_id, second.branch) == ("ch-2", "cockpit/ch-2-3")
    assert [one.chain_id for one in world.store.read_now(chains.select)] == ["ch-2", "ch-1"]
    assert chains.read_id("CH2") == chains.read_id("2") == chains.read_id(" ch-02 ") == "ch-2"
    for given in ("", "T-1", "ch-", "ch-0", "-1", "²"):
        with pytest.raises(NotFound):
            chains.read_id(given)


def test_progress_counts_the_scope_alone(world: World) -> None:
    def step(tx: Any) -> None:
        epic = service.create_epic(tx, "Epic", by="person").epic_id
        for name in ("A", "B"):
            story = service.create_story(tx, name, epic_id=epic, by="person").story_id
            for at in range(2):
                service.create_task(tx, f"{name}{at}", story_id=story, by="person")
        service.create_task(tx, "Alone", by="person")
        service.set_status(tx, "T-1", "done", by="person")
        service.set_status(tx, "T-2", "blocked", "why", by="person")
        service.set_status(tx, "T-3", "in_progress", by="person")
        service.set_status(tx, "T-5", "archived", by="person")

    world.store.write_now(step)
    made = chain(world.store)

    def told(kind: str, scope_id: str = "") -> dict[str, int]:
        scope = replace(made, scope_kind=kind, scope_id=scope_id)
        return asdict(world.store.read_now(lambda found: chains.count_progress(found, scope)))

    # What was done before is not the chain's.
    whole = {"total": 3, "done": 0, "blocked": 1, "under_way": 1, "ready": 1}
    assert told("all") == told("epic", "E-1") == whole
    assert told("story", "S-1") == {**whole, "total": 1, "under_way": 0, "ready": 0}
    assert told("story", "S-2") == {**whole, "total": 2, "blocked": 0}
    world.store.write_now(
        lambda tx: task_runs.begin(tx, "T-1", 1, "done", chain_id=made.chain_id, ordinal=1)
    )
    assert told("all") == {**whole, "total": 4, "done": 1}


def test_a_chain_ends_once_and_a_complete_one_stays_so(world: World) -> None:
    made = chain(world.store)
    drained = world.store.write_now(lambda tx: chains.drain(tx, made.chain_id))
    assert (drained.status, drained.stop_now) == ("draining", False)
    world.store.write_now(lambda tx: chains.record_report(tx, made.chain_id, "report.md"))
    rows = len(world.rows("chain.changed"))
    world.store.write_now(lambda tx: chains.drain(tx, made.chain_id))
    assert len(world.rows("chain.changed")) == rows
    assert world.store.write_now(lambda tx: chains.drain(tx, made.chain_id, now=True)).stop_now
    world.store.write_now(lambda tx: chains.end(tx, made.chain_id, "stopped", "drained"))
    with pytest.raises(IllegalTransition):
        world.store.write_now(lambda tx: chains.end(tx, made.chain_id, "completed", ""))
    with pytest.raises(IllegalTransition):
        world.store.write_now(lambda tx: chains.drain(tx, made.chain_id))
    again = world.store.write_now(lambda tx: chains.resume(tx, made.chain_id, max_chains=7))
    assert (again.status, again.reason, again.stop_now, again.max_chains) == (
        "running",
        "",
        False,
        7,
    )
    assert again.began_at > made.began_at
    assert again.report_path is None
    world.store.write_now(lambda tx: chains.end(tx, made.chain_id, "completed", ""))
    with pytest.raises(IllegalTransition):
        world.store.write_now(lambda tx: chains.resume(tx, made.chain_id))
    assert world.store.read_now(chains.find_unfinished) is None


def test_a_chain_is_watched_by_one_process(world: World) -> None:
    made = chain(world.store)
    with Store.open(world.place.database) as other:
        assert other.write_now(lambda tx: chains.acquire(tx, made.chain_id)).owner == made.owner
    world.store.write_now(lambda tx: tx.execute("UPDATE chains SET owner=?", (f"{os.getppid()}/",)))
    with pytest.raises(Stale, match="runs ch-"):
        world.store.write_now(lambda tx: chains.acquire(tx, made.chain_id))
    world.store.write_now(lambda tx: tx.execute("UPDATE chains SET owner='999999999/1'"))
    assert world.store.write_now(lambda tx: chains.acquire(tx, made.chain_id)).owner == made.owner


def test_a_chain_has_one_worker_at_a_time(world: World) -> None:
    made = chain(world.store)
    started(world, made, 1)
    for ordinal in (1, 2):
        with pytest.raises(IllegalTransition, match="one worker at a time"):
            started(world, made, ordinal)
    world.store.write_now(lambda tx: workers.end(tx, made, 1, "clean", "pressure"))
    with pytest.raises(IllegalTransition):
        world.store.write_now(lambda tx: workers.end(tx, made, 1, "clean", "pressure"))
    with pytest.raises(IllegalTransition):
        started(world, made, 1)
    assert started(world, made, 2).owner == "ch-1/s2"


def test_what_a_dead_session_held_is_free(world: World) -> None:
    made, task_id = chain(world.store), world.task()
    first = started(world, made, 1)
    world.store.write_now(lambda tx: task_leases.acquire(tx, task_id, first.owner))
    assert world.store.write_now(lambda tx: mark_dead_workers(tx, made.chain_id)) == ()
    world.store.write_now(lambda tx: tx.execute("UPDATE chain_sessions SET process='999999999/1'"))
    (dead,) = world.store.write_now(lambda tx: mark_dead_workers(tx, made.chain_id))
    assert (dead.status, dead.reason) == ("crashed", "its process is gone")
    now = format_time(world.store.clock.now())
    assert world.store.read_now(lambda found: task_leases.select_active(found, now)) == []
    with pytest.raises(IllegalTransition, match="declared dead"):
        world.store.write_now(
            lambda tx: workers.record_heartbeat(
                tx, made.chain_id, 1, tokens=1, dropped_share=0, cost_usd=0, batches=1
            )
        )


def test_a_chain_whose_processes_all_died_is_closed(world: World) -> None:
    made, task_id = chain(world.store), world.task()
    first = started(world, made, 1)
    world.store.write_now(lambda tx: task_leases.acquire(tx, task_id, first.owner))
    edits = (
        "UPDATE chains SET owner='999999999/1'",
        "UPDATE chain_sessions SET process='999999999/1'",
    )
    for edit in edits:
        assert world.store.read_now(find_dead_chains) == []  # one of its processes lives
        world.store.write_now(lambda tx, edit=edit: tx.execute(edit))
    (ended,) = world.store.write_now(close_dead_chains)
    assert (ended.status, ended.reason) == ("failed", "all of its processes died")
    now = format_time(world.store.clock.now())
    assert world.store.read_now(lambda found: task_leases.select_active(found, now)) == []
    assert world.store.read_now(find_dead_chains) == []
    assert world.store.write_now(lambda tx: chains.resume(tx, made.chain_id)).status == "running"


def test_a_lease_is_one_owners_until_it_is_over(tmp_path: Path) -> None:
    clock = FixedClock()
    with Store.open(tmp_path / "a.db", clock, RandomIds()) as store:
        task_id = store.write_now(lambda tx: service.create_task(tx, "One", by="p")).task_id
        token = store.write_now(lambda tx: task_leases.acquire(tx, task_id, "ch-1/s1"))
        with pytest.raises(Stale, match="ch-1/s1 is working on"):
            store.write_now(lambda tx: task_leases.acquire(tx, task_id, "ch-2/s1"))
        clock.advance(task_leases.LEASE_S - 1)
        store.write_now(lambda tx: task_leases.renew(tx, task_id, token))
        clock.advance(task_leases.LEASE_S - 1)
        with pytest.raises(Stale):
            store.write_now(lambda tx: task_leases.acquire(tx, task_id, "ch-2/s1"))
        clock.advance(2)
        other = store.write_now(lambda tx: task_leases.acquire(tx, task_id, "ch-2/s1"))
        with pytest.raises(Stale, match="took over"):
            store.write_now(lambda tx: task_leases.renew(tx, task_id, token))
        store.write_now(lambda tx: task_leases.release(tx, task_id, token))
        now = format_time(clock.now())
        assert (
            store.read_now(lambda found: task_leases.find_holder(found, task_id, now)) is not None
        )
        store.write_now(lambda tx: task_leases.release(tx, task_id, other))
        assert store.read_now(lambda found: task_leases.find_holder(found, task_id, now)) is None
        store.write_now(lambda tx: task_leases.acquire(tx, task_id, "ch-2/s1"))
        store.write_now(lambda tx: tx.execute("UPDATE task_leases SET process='999999999/1'"))
        assert store.read_now(lambda found: task_leases.find_holder(found, task_id, now)) is None


FOLLOWS = (
    ([], 3, NOTHING, 0, "", ""),
    ([], 0, NOTHING, 0, "completed", ""),
    ([session(1, "clean", "pressure")], 3, ChainUsage(1, 9, 0, 0), 0, "", ""),
    ([session(1, "clean", "quota")], 3, ChainUsage(1, 9, 0, 0), 0, "", ""),
    ([session(1, "clean", "pressure")], 0, ChainUsage(1, 9, 0, 0), 0, "completed", ""),
    ([session(1, "clean", "empty")], 1, ChainUsage(1, 9, 0, 0), 0, "limited", "1 task left that"),
    ([session(1, "clean", "held")], 2, ChainUsage(1, 9, 0, 0), 0, "limited", "wait for others"),
    ([session(1, "clean", "limit")], 2, ChainUsage(1, 9, 0, 0), 0, "limited", "cost or time"),
    ([session(1, "clean", "pressure")], 2, ChainUsage(3, 9, 0, 0), 0, "limited", "after 3 workers"),
    ([session(1, "clean", "pressure")], 2, ChainUsage(1, 9, 2.0, 0), 0, "limited", "of $2"),
    ([session(1, "clean", "pressure")], 2, ChainUsage(1, 9, 0, 60), 0, "limited", "60 seconds"),
    ([session(1, "stopped", "stopped")], 2, ChainUsage(1, 9, 0, 0), 0, "stopped", "stopped"),
    ([session(1, "crashed", "gone")], 2, NOTHING, 1, "", ""),
    ([session(1, "crashed", "gone")], 2, NOTHING, MAX_CRASHES, "failed", "died in a row"),
    ([session(1, "crashed", "gone")], 0, NOTHING, MAX_CRASHES, "completed", ""),
    # What ended before the chain was resumed says nothing of now.
    ([session(1, "clean", "empty", "2020")], 1, ChainUsage(1, 9, 0, 0), 0, "", ""),
    ([session(1, "stopped", "stopped", "2020")], 1, ChainUsage(1, 9, 0, 0), 0, "", ""),
)  # fmt: skip


def test_each_end_of_a_worker_is_followed_by_its_decision(world: World) -> None:
    made = chain(world.store, max_cost=2.0, max_wall_s=60.0)
    for known, left, used, crashes, status, said in FOLLOWS:
        found = decide_from(made, known, left, used, crashes)
        assert found.status == status, known
        assert said in found.reason
        assert found.continues == (not status)
        drains = decide_from(replace(made, status="draining"), known, left, used, crashes)
        assert (drains.status, drains.reason) == ("stopped", "drained")

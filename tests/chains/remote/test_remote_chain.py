"""Chains whose tasks workers of other machines do: what comes back, and what a death of anyone costs."""

from __future__ import annotations

from pathlib import Path

import pytest
from chains.remote.near_world import near
from chains.remote.played_worker import claim_now, send_result
from chains.remote.remote_chaos import play
from chains.remote.remote_world import LEASE_S, machines
from chains.remote.wires import proxy
from examples import examples

from cockpit.chains.remote.jetstream_queue import open_queue
from cockpit.store.chains import chains, remote_runs, worktrees
from cockpit.store.journal import verify_chain

pytestmark = pytest.mark.slow


@pytest.mark.search
@pytest.mark.parametrize("seed", range(examples(1)))
def test_kills_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    count = 2 if seed == 0 else 6
    with machines(tmp_path, count) as world:
        play(world, count, seed, kills=count - 1)


async def test_two_workers_do_the_tasks_of_a_chain(tmp_path: Path) -> None:
    async with near(tmp_path) as world:
        await world.begin(2)
        coordinator = world.coordinate()
        world.start_worker("one")
        world.start_worker("other")
        ended = await world.end(coordinator)
        assert (ended.status, ended.reason) == ("clean", "empty")
        assert set(world.statuses().values()) == {"done"}, world.said
        assert world.merged() == ["T-1", "T-2"]
        returned = world.runs("returned")
        assert {row["worker"] for row in returned} <= {"one", "other"}
        assert {row["fence"] for row in returned} == {1}
        assert len(world.rows("remote.rows.received")) >= 2
        assert world.store.read_now(verify_chain.verify).ok
        assert not world.store.read_now(remote_runs.select_open)


async def test_a_worker_that_is_cut_off_cannot_merge_and_works_again_later(tmp_path: Path) -> None:
    async with near(tmp_path, lease_s=LEASE_S) as world:
        with proxy(world.server) as wire:
            await world.begin(1, pace=0.2)
            coordinator = world.coordinate()
            world.start_worker("far", wire.url)
            # Not when the claim stands here: its answer is on its way then.
            (begun,) = await world.until(lambda: [x for x in world.said if " starts (" in x])
            (claim,) = world.runs("claimed")
            assert begun.startswith(f"far: {claim['task_id']} starts")
            wire.cut()
            world.start_worker("near")
            assert (await world.end(coordinator)).reason == "empty"
            claims = world.runs("claimed")
            assert [row["worker"] for row in claims] == ["far", "near"]
            assert world.merged() == ["T-1"]
            wire.mend()
            # Its work is on its way still; the next coordinator refuses it.
            lost = claim["task_id"]
            await world.until(lambda: any(f"far: {lost}: ready" in line for line in world.said))
            world.add_task(2)
            assert (await world.end(world.coordinate())).reason == "empty"
            void = [(row["worker"], row["task_id"]) for row in world.runs("void")]
            assert ("far", lost) in void
            assert world.merged() == ["T-1", "T-2"]


async def test_a_task_whose_model_refuses_waits_and_is_blocked_in_the_end(tmp_path: Path) -> None:
    async with near(tmp_path) as world:
        await world.begin(1)
        refuses = '[[turn]]\ntext = "x"\nerror = { code = "bad_request" }\n'
        (world.world.folder / "scenario.toml").write_text(refuses)
        coordinator = world.coordinate()
        world.start_worker("w1")
        assert (await world.end(coordinator)).reason == "empty"
        assert world.statuses() == {"T-1": "blocked"}
        assert len(world.runs("sent")) == 2
        assert len(world.rows("chain.delayed")) == 1


async def test_a_drain_takes_back_every_run_that_no_worker_has(tmp_path: Path) -> None:
    async with near(tmp_path) as world:
        await world.begin(2)
        coordinator = world.coordinate()
        await world.until(lambda: len(world.runs("sent")) == 2)
        world.store.write_now(lambda tx: chains.drain(tx, "ch-1"))
        assert (await world.end(coordinator)).reason == "drained"
        assert len(world.runs("withdrawn")) == 2


async def test_the_work_of_a_task_that_the_user_ended_is_kept_and_not_merged(
    tmp_path: Path,
) -> None:
    async with near(tmp_path) as world:
        await world.begin(2)
        coordinator = world.coordinate()
        await world.until(lambda: len(world.runs("sent")) == 2)
        fence = await claim_now(world, "slow")
        for task_id in ("T-1", "T-2"):
            world.stand(task_id, "archived")
        result = await send_result(world, "slow", fence)
        await world.end(coordinator)
        assert world.merged() == []
        tree = world.world.tree("T-1")
        assert tree.status == "kept"
        git = world.world.show
        assert git("made-T-1.txt", tree.branch) == "slow" and result.commit
        assert not world.store.read_now(remote_runs.select_open), "T-2 left the queue"
        assert world.store.read_now(lambda c: worktrees.load(c, "T-1")).status == "kept"
        async with open_queue(world.scale(), name="late") as queue:
            names = queue.subjects
            assert not await queue.holds(names.runs_stream, names.run("T-2", 1))

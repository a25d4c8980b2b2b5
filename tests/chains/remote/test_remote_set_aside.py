"""A task that the user ends while it is in the queue or with a worker of another machine."""

from __future__ import annotations

import asyncio

import pytest
from chains.chain_world import slowly
from chains.remote.played_worker import claim_now, push_work, scale_of, send_result
from chains.remote.remote_world import Machines, machines
from chains.remote.test_remote_chain import wait_until

from cockpit.chains.remote.jetstream_queue import open_queue
from cockpit.chains.remote.message_types import Claim, ClaimAnswer, decode, encode
from cockpit.store.chains import remote_runs, worktrees
from cockpit.store.chains.remote_runs import RemoteRun

pytestmark = pytest.mark.slow


def load(world: Machines) -> RemoteRun:
    run: RemoteRun = world.chains.read(lambda c: remote_runs.load(c, "T-1", 1))
    return run


def shared_branches(world: Machines) -> str:
    return world.chains.project.git("ls-remote", "origin", "refs/heads/cockpit/remote/T-*")


@pytest.mark.parametrize("ends", ["archive", "block"])
def test_a_result_of_a_task_that_was_ended_is_kept_and_not_merged(tmp_path, ends):
    with machines(tmp_path, 1) as world:
        chains = world.chains
        running = world.work(chains.scenario(1))
        wait_until(lambda: chains.rows("remote.run.sent"))
        lost = asyncio.run(claim_now(world, "lost"))
        asyncio.run(send_branch_only(world, lost))
        fence = asyncio.run(claim_now(world, "slow"))
        words = ("not now",) if ends == "block" else ()
        chains.project.run("tasks", ends, "T-1", *words)
        result = asyncio.run(send_result(world, "slow", fence))
        _, output = chains.end(running)
        assert "batch 1 interrupted" in output, output
        assert chains.statuses().get("T-1", "archived") != "done"
        assert not chains.project.git("log", "--format=%s", "--merges", "cockpit/ch-1")
        tree = chains.read(lambda c: worktrees.load(c, "T-1"))
        assert tree.status == "kept"
        assert chains.project.git("rev-parse", tree.branch).strip() == result.commit
        assert shared_branches(world) == "", "what its workers pushed is removed"
        assert not chains.read(remote_runs.select_open)
        # The user may think again: then it goes on where it was left.
        chains.project.run("tasks", "reopen" if ends == "archive" else "unblock", "T-1")
        code, output = chains.end(world.work(chains.scenario(1)))
        assert chains.statuses() == {"T-1": "done"}, (code, output)


async def send_branch_only(world: Machines, fence: int) -> None:
    """Push as a worker that died before it could send its result."""
    push_work(world, "lost", fence, "T-1")


def test_a_task_that_the_user_archives_leaves_the_queue(tmp_path):
    with machines(tmp_path, 1) as world:
        chains = world.chains
        running = world.work(chains.scenario(1))
        wait_until(lambda: chains.rows("remote.run.sent"))
        chains.project.run("tasks", "archive", "T-1")
        _, output = chains.end(running)
        assert "batch 1 interrupted" in output, output
        assert load(world).state == "withdrawn"
        assert asyncio.run(is_refused(world))


async def is_refused(world: Machines) -> bool:
    """Whether the run is in no worker's reach any more."""
    async with open_queue(scale_of(world), name="late") as queue:
        names = queue.subjects
        return not await queue.holds(names.runs_stream, names.run("T-1", 1))


def test_a_worker_stops_after_its_step_once_the_user_archived_the_task(tmp_path):
    with machines(tmp_path, 1) as world:
        chains = world.chains
        world.start_worker("a")
        running = world.work(slowly(chains.scenario(1), 1.0))
        wait_until(lambda: chains.rows("remote.run.claimed"))
        chains.project.run("tasks", "archive", "T-1")
        _, output = chains.end(running)
        (returned,) = chains.rows("remote.run.returned")
        assert returned["status"] == "interrupted", (output, world.log("a"))
        assert not chains.read(remote_runs.select_open)


def test_a_worker_that_asks_late_takes_no_run_from_another(tmp_path):
    with machines(tmp_path, 1) as world:
        chains = world.chains
        running = world.work(chains.scenario(1))
        wait_until(lambda: chains.rows("remote.run.sent"))

        async def ask(name: str, delivery: int) -> bytes:
            async with open_queue(scale_of(world), name=name) as queue:
                wanted = encode(Claim("T-1", 1, name, 1, delivery))
                return await queue.request(queue.subjects.claim, wanted)

        asyncio.run(ask("early", 1))
        fence = decode(ClaimAnswer, asyncio.run(ask("later", 2))).fence
        assert asyncio.run(ask("early", 1)) == b"", "its question was on its way for long"
        assert (load(world).worker, load(world).fence) == ("later", fence)
        asyncio.run(send_result(world, "later", fence))
        code, output = chains.end(running)
        assert (code, chains.statuses()) == (0, {"T-1": "done"}), output

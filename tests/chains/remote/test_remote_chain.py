"""Chains whose tasks workers of other machines do: what comes back, and what a death of anyone costs."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from chains.chain_world import slowly
from chains.remote.remote_chaos import kill_coordinator, play
from chains.remote.remote_world import Machines, machines
from commands.cli_world import PATIENCE_S

pytestmark = pytest.mark.slow

SEEDS = range(int(os.environ.get("COCKPIT_REMOTE_SEEDS", "1")))
"""How often a chain is played with kills; more where there is time."""
TASKS = int(os.environ.get("COCKPIT_REMOTE_TASKS", "6"))


def test_three_workers_do_a_chain(tmp_path):
    with machines(tmp_path, 4) as world:
        chains = world.chains
        for name in ("a", "b", "c"):
            world.start_worker(name)
        code, output = chains.end(world.work(chains.scenario(4)))
        logs = {name: world.log(name) for name in world.workers}
        assert code == 0, (output, logs)
        assert set(chains.statuses().values()) == {"done"}, (output, logs)
        merged = chains.project.git("log", "--format=%s", "--merges", "cockpit/ch-1")
        assert len(merged.splitlines()) == 4
        assert {row["fence"] for row in chains.rows("remote.run.returned")} == {1}
        assert len(chains.rows("remote.rows.received")) >= 4
        chains.project.run("journal", "verify")


@pytest.mark.parametrize("seed", SEEDS)
def test_kills_lose_and_double_nothing(tmp_path, seed):
    with machines(tmp_path, TASKS) as world:
        play(world, TASKS, seed, kills=TASKS - 1)


def test_the_users_decision_reaches_the_worker(tmp_path):
    with machines(tmp_path, 2) as world:
        chains = world.chains
        world.start_worker("build-1")
        running = chains.project.start(
            "work", "--headless", "--approve", "reads", "--all", *chains.model(chains.scenario(2))
        )
        decided = []
        for _ in range(2):
            waiting = wait_for_proposal(world, but=decided)
            assert waiting["title"].startswith("create part"), waiting
            shown = chains.project.run("proposals", "show", waiting["proposal_id"]).stdout
            assert "build-1" in shown and "x = " in shown, shown
            # A decision is bound to what was shown, on this machine as on that one.
            chains.project.run(
                "proposals", "approve", waiting["proposal_id"], "--shown", "0" * 64, expect=3
            )
            chains.project.run("proposals", "approve", waiting["proposal_id"])
            decided.append(waiting["proposal_id"])
        code, output = chains.end(running)
        assert code == 0 and set(chains.statuses().values()) == {"done"}, (
            output,
            world.log("build-1"),
        )
        exported = tmp_path / "rows.jsonl"
        exported.write_text(chains.project.run("journal", "export", "--task", "T-1").stdout)
        rows = [json.loads(line) for line in exported.read_text().splitlines()]
        (approved,) = [row for row in rows if row["action"] == "proposal.approved"]
        assert approved["actor"] == "person"
        chains.project.run("journal", "verify", "--export", str(exported))


def test_a_proposal_outlives_the_coordinator_that_showed_it(tmp_path):
    with machines(tmp_path, 1) as world:
        chains = world.chains
        world.start_worker("build-1")
        running = chains.project.start(
            "work", "--headless", "--approve", "reads", "--all", *chains.model(chains.scenario(1))
        )
        first = wait_for_proposal(world, but=[])
        kill_coordinator(world, running)
        running = chains.project.start("work", "--continue", "--headless")
        again = wait_for_proposal(world, but=[first["proposal_id"]])
        assert again["title"] == first["title"]
        chains.project.run("proposals", "approve", again["proposal_id"])
        code, output = chains.end(running)
        assert code == 0 and set(chains.statuses().values()) == {"done"}, output


def test_a_drain_takes_back_what_no_worker_has(tmp_path):
    with machines(tmp_path, 3) as world:
        chains = world.chains
        running = world.work(chains.scenario(3))
        wait_until(lambda: len(chains.rows("remote.run.sent")) == 3)
        chains.project.run("chain", "stop", "ch-1")
        code, output = chains.end(running)
        assert code == 130, output
        assert len(chains.rows("remote.run.withdrawn")) == 3
        world.start_worker("late")
        code, output = chains.end(chains.project.start("work", "--continue", "--headless"))
        assert set(chains.statuses().values()) == {"done"}, (output, world.log("late"))


def test_a_worker_that_lost_its_run_changes_nothing(tmp_path):
    with machines(tmp_path, 1) as world:
        chains = world.chains
        slow = world.start_worker("slow", is_cold=True)
        running = world.work(slowly(chains.scenario(1), 1.0))
        wait_until(lambda: chains.rows("remote.run.claimed"))
        # To the server it is dead; it goes on once another one has done the task.
        os.kill(slow.pid, signal.SIGSTOP)
        world.start_worker("quick")
        wait_until(lambda: len(chains.rows("remote.run.claimed")) == 2)
        os.kill(slow.pid, signal.SIGCONT)
        code, output = chains.end(running)
        assert code == 0, output
        assert [row["fence"] for row in chains.rows("remote.run.returned")] == [2]
        (returned,) = chains.rows("remote.run.returned")
        assert returned["worker"] == "quick"
        merged = chains.project.git("log", "--format=%s", "--merges", "cockpit/ch-1")
        assert len(merged.splitlines()) == 1


def wait_for_proposal(world: Machines, *, but: list[str]) -> dict[str, Any]:
    """Wait for a proposal in the coordinator's queue that is none of ``but``."""
    waiting: list[dict[str, Any]] = []

    def look() -> bool:
        pending = world.chains.project.json("proposals", "list", "--json")
        waiting[:] = [each for each in pending if each["proposal_id"] not in but]
        return bool(waiting)

    wait_until(look)
    return waiting[0]


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.1)

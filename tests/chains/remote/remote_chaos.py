"""A chain over a queue while workers, server and coordinator are killed: what has to hold at its end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time

from chains.chain_world import slowly
from chains.remote.remote_world import Machines
from commands.cli_world import PATIENCE_S

from cockpit.core.processes import is_process_alive
from cockpit.store.chains import remote_runs
from cockpit.store.journal import journal


def play(world: Machines, count: int, seed: int, *, kills: int) -> None:
    """Do ``count`` tasks with three workers and kill ``kills`` times; check that each was done once."""
    dice = random.Random(seed)
    chains = world.chains
    scenario = slowly(chains.scenario(count), 0.1)
    names = ["a", "b", "c"][: max(2, count // 2)]
    for name in names:
        world.start_worker(name)
    running = world.work(scenario)
    while not chains.runs("sent"):
        assert running.poll() is None
        time.sleep(0.05)  # a chain that was never created cannot be resumed
    for _ in range(kills):
        # What a kill hits is left to chance; the states that it must survive are all of them.
        rows = chains.read(journal.last_seq) + dice.randint(1, 40)
        while chains.read(journal.last_seq) < rows and running.poll() is None:
            time.sleep(0.05)
        victim = dice.choice([*names, "server", "coordinator"])
        if victim == "server":
            world.server.kill()
            world.server.start()
        elif victim == "coordinator":
            kill_coordinator(world, running)
            running = chains.project.start("work", "--continue", "--headless")
        else:
            world.workers[victim].kill()
            world.start_worker(victim)
    deadline = time.monotonic() + PATIENCE_S * max(1, count // 6)
    while True:
        output, errors = running.communicate(timeout=PATIENCE_S * max(1, count // 6))
        code = running.returncode
        open_tasks = [
            task for task, status in chains.statuses().items() if status not in ("done", "blocked")
        ]
        if not open_tasks:
            break
        assert time.monotonic() < deadline, (code, output, errors, chains.statuses())
        running = chains.project.start("work", "--continue", "--headless")
    check(world, count)


def kill_coordinator(world: Machines, running: subprocess.Popen[str]) -> None:
    """Kill the chain's worker process and its supervisor."""
    for worker in world.chains.sessions():
        if worker.status == "running" and is_process_alive(worker.process):
            os.kill(worker.pid, signal.SIGKILL)
    running.kill()
    running.communicate()


def check(world: Machines, count: int) -> None:
    """Each task is done, merged once, and every journal holds."""
    chains = world.chains
    blocked = [task for task, status in chains.statuses().items() if status != "done"]
    logs = {name: world.log(name)[-3_000:] for name in world.workers}
    assert not blocked, (blocked, chains.rows("task.changed"), logs)
    branches = [row["branch"] for row in chains.rows("chain.changed") if row["what"] == "created"]
    merged = [
        line
        for branch in set(branches)
        for line in chains.project.git("log", "--format=%s", "--merges", branch).splitlines()
        if line.startswith("Merge T-")
    ]
    assert len(merged) == len(set(merged)) == count, merged
    for at in range(1, count + 1):
        assert chains.project.git("show", f"{branches[-1]}:part{at}.py") == f"x = {at}\n"
    assert not chains.read(remote_runs.select_open)
    lost = [row for row in chains.runs("void") if row["fence"] == row["current"]]
    assert lost == [], f"thrown away, from the worker that has the run: {lost}"
    chains.project.run("debug", "journal")

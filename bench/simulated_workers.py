"""Workers that do nothing but answer as workers do, any number in one process, for the bench.

Usage: ``python bench/simulated_workers.py SERVER QUEUE SHARED_REPOSITORY COUNT DEATHS SEED``. Each takes
runs, claims them, pushes a commit that adds a file, and sends the steps of a task that went well. With
probability DEATHS it forgets a run instead, as one that was killed. Where SHARED_REPOSITORY is ``none``, runs
change nothing, and no git is started.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys

from cockpit.chains.remote.jetstream_queue import (
    MessageQueue,
    QueueUnreachable,
    fetch,
    open_queue,
    read_run,
)
from cockpit.chains.remote.message_types import (
    Claim,
    ClaimAnswer,
    RunMessage,
    RunResult,
    StepResult,
    decode,
    encode,
    work_branch,
)
from cockpit.chains.remote.scale_settings import ScaleSettings

CONNECTIONS = 50
LEASE_S = 2.0
_PASSES = (("test", "none"), ("spec_review", "PASS"), ("quality_review", "PASS"))


async def main(server: str, queue: str, shared: str, count: int, deaths: float, seed: int) -> None:
    """Serve until killed."""
    scale = ScaleSettings("nats", server, queue, shared, lease_s=LEASE_S)
    async with asyncio.TaskGroup() as group:
        for connection in range(min(count, CONNECTIONS)):
            names = [f"w{number}" for number in range(connection, count, CONNECTIONS)]
            group.create_task(connect(scale, names, deaths, seed))


async def connect(scale: ScaleSettings, names: list[str], deaths: float, seed: int) -> None:
    """Play the workers of one connection."""
    async with open_queue(scale, name=names[0]) as queue, asyncio.TaskGroup() as group:
        for name in names:
            dice = random.Random(f"{seed}/{name}")
            group.create_task(work(queue, name, scale.git, deaths, dice))


async def work(
    queue: MessageQueue, name: str, shared: str, deaths: float, dice: random.Random
) -> None:
    """Take one run after the other."""
    source = await queue.take_runs()
    while True:
        for message in await fetch(source, 1, 30):
            run = read_run(message.data)
            try:
                claim = encode(Claim(run.task_id, run.run, name))
                fence = decode(ClaimAnswer, await queue.request(queue.subjects.claim, claim)).fence
            except QueueUnreachable:
                await queue.settle(message, "again")
                continue
            if fence and dice.random() < deaths:
                continue
            if fence:
                commit = run.base_commit
                if shared != "none":
                    commit = await asyncio.to_thread(make_commit, run, fence, shared)
                await send(queue, describe(run, fence, name, commit))
            await queue.settle(message, "done")


async def send(queue: MessageQueue, result: RunResult) -> None:
    """Send a result, as often as it takes."""
    while True:
        try:
            return await queue.send_back("result", result)
        except QueueUnreachable:
            await asyncio.sleep(1)


def make_commit(run: RunMessage, fence: int, shared: str) -> str:
    """Make a commit in the shared repository, on the branch of the run."""
    branch = work_branch(run.task_id, run.run, fence)
    blob = git(shared, "hash-object", "-w", "--stdin", given=f"{run.task_id}\n")
    listed = git(shared, "ls-tree", run.base_commit)
    tree = git(shared, "mktree", given=f"{listed}\n100644 blob {blob}\tmade-{run.task_id}\n")
    who = ("-c", "user.name=Simulated", "-c", "user.email=simulated@localhost")
    words = (*who, "commit-tree", tree, "-p", run.base_commit, "-m", f"Make {run.task_id}")
    commit = git(shared, *words)
    git(shared, "update-ref", f"refs/heads/{branch}", commit)
    return commit


def describe(run: RunMessage, fence: int, name: str, commit: str) -> RunResult:
    """Return the result of a run that went well."""
    first = StepResult("implement", "done", {"summary": "Made.", "tip": commit})
    return RunResult(
        task_id=run.task_id,
        run=run.run,
        fence=fence,
        worker=name,
        status="ready",
        summary="ready",
        branch=work_branch(run.task_id, run.run, fence),
        commit=commit,
        steps=(first, *(StepResult(step, outcome, {}) for step, outcome in _PASSES)),
    )


def git(folder: str, *words: str, given: str = "") -> str:
    """Run git in the repository; return its output."""
    done = subprocess.run(
        ["git", "-C", folder, *words], input=given, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    SERVER, QUEUE, SHARED, COUNT, DEATHS, SEED = sys.argv[1:]
    asyncio.run(main(SERVER, QUEUE, SHARED, int(COUNT), float(DEATHS), int(SEED)))

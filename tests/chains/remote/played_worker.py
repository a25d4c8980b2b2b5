"""A worker that tests play by hand: it takes a run up, and sends a result of the right form."""

from __future__ import annotations

from chains.remote.remote_world import Machines

from cockpit.chains.remote.jetstream_queue import MessageQueue, open_queue
from cockpit.chains.remote.message_types import (
    Claim,
    ClaimAnswer,
    RunResult,
    StepResult,
    decode,
    encode,
    work_branch,
)
from cockpit.chains.remote.scale_settings import ScaleSettings

PASSES = (("test", "none"), ("spec_review", "PASS"), ("quality_review", "PASS"))


def scale_of(world: Machines) -> ScaleSettings:
    return ScaleSettings(backend="nats", server=world.server.url, queue="shop")


async def claim(queue: MessageQueue, name: str, task_id: str = "T-1") -> int:
    """Take run 1 of the task up; return its number, 0 where it is over."""
    answer = await queue.request(queue.subjects.claim, encode(Claim(task_id, 1, name)))
    return decode(ClaimAnswer, answer).fence


async def claim_now(world: Machines, name: str, task_id: str = "T-1") -> int:
    async with open_queue(scale_of(world), name=name) as queue:
        return await claim(queue, name, task_id)


async def send_result(world: Machines, name: str, fence: int, task_id: str = "T-1") -> RunResult:
    """Push a commit with a file, and send it as the result of a run that went well."""
    result = push_work(world, name, fence, task_id)
    async with open_queue(scale_of(world), name=name) as queue:
        await queue.send_back("result", result)
    return result


def push_work(world: Machines, name: str, fence: int, task_id: str) -> RunResult:
    """Make a commit on the base of the chain in the shared repository, as work of ``name``."""
    git = world.chains.project.git
    (base,) = {row["base_commit"] for row in world.chains.rows("remote.run.sent")}
    folder = world.shared.parent / f"{name}-{task_id}"
    git("clone", "--quiet", str(world.shared), str(folder))
    git("-C", str(folder), "switch", "--quiet", "--detach", base)
    (folder / f"made-{task_id}.txt").write_text(f"{name}\n")
    git("-C", str(folder), "add", ".")
    git("-C", str(folder), "commit", "--quiet", "-m", f"Make {task_id}")
    branch = work_branch(task_id, 1, fence)
    git("-C", str(folder), "push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
    commit = git("-C", str(folder), "rev-parse", "HEAD").strip()
    first = StepResult("implement", "done", {"summary": "Made.", "tip": commit})
    return RunResult(
        task_id=task_id, run=1, fence=fence, worker=name, status="ready", summary="ready",
        branch=branch, commit=commit,
        steps=(first, *(StepResult(step, outcome, {}) for step, outcome in PASSES)),
    )  # fmt: skip

"""A worker that tests play by hand: it takes a run up, and sends a result of the right form."""

from __future__ import annotations

from chains.remote.near_world import Near
from tasks.taskrun_world import git

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

PASSES = (("test", "none"), ("spec_review", "PASS"), ("quality_review", "PASS"))


async def claim(queue: MessageQueue, name: str, task_id: str = "T-1") -> int:
    """Take run 1 of the task up; return its number, 0 where it is over."""
    answer = await queue.request(queue.subjects.claim, encode(Claim(task_id, 1, name)))
    return decode(ClaimAnswer, answer).fence


async def claim_now(world: Near, name: str, task_id: str = "T-1") -> int:
    async with open_queue(world.scale(), name=name) as queue:
        return await claim(queue, name, task_id)


async def send_result(world: Near, name: str, fence: int, task_id: str = "T-1") -> RunResult:
    """Push a commit with a file, and send it as the result of a run that went well."""
    (base,) = {row["commit"] for row in world.runs("sent")}
    folder = world.world.folder / f"{name}-{task_id}"
    git(world.world.folder, "clone", "--quiet", str(world.shared), str(folder))
    git(folder, "switch", "--quiet", "--detach", base)
    (folder / f"made-{task_id}.txt").write_text(f"{name}\n")
    git(folder, "add", ".")
    who = ("-c", "user.name=North", "-c", "user.email=north@localhost")
    git(folder, *who, "commit", "--quiet", "-m", f"Make {task_id}")
    branch = work_branch(task_id, 1, fence)
    git(folder, "push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
    commit = git(folder, "rev-parse", "HEAD")
    first = StepResult("implement", "done", {"summary": "Made.", "tip": commit})
    result = RunResult(
        task_id=task_id, run=1, fence=fence, worker=name, status="ready", summary="ready",
        branch=branch, commit=commit,
        steps=(first, *(StepResult(step, outcome, {}) for step, outcome in PASSES)),
    )  # fmt: skip
    async with open_queue(world.scale(), name=name) as queue:
        await queue.send_back("result", result)
    return result

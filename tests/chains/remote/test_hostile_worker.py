"""A worker that means harm: what it sends is refused, and the chain goes on with the others."""

from __future__ import annotations

import asyncio
import json
import os
import zlib
from typing import Any

import msgspec
import pytest
from chains.remote.near_world import near
from chains.remote.played_worker import claim
from chains.remote.remote_world import LEASE_S, Server
from tasks.taskrun_world import git

from cockpit.chains.remote.jetstream_queue import (
    MessageQueue,
    QueueTaken,
    RunTooLarge,
    fetch,
    open_queue,
    read_run,
)
from cockpit.chains.remote.message_types import (
    BackMessage,
    JournalRows,
    ProposalNotice,
    RunMessage,
    RunResult,
    StepResult,
    encode,
    work_branch,
)
from cockpit.chains.remote.scale_settings import ScaleSettings
from cockpit.store.chains import remote_runs
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow

RUN: dict[str, Any] = {"task_id": "T-1", "run": 1}
DEEP = json.loads("[" * 900 + "]" * 900)
FLOOD = 36


def deep_text(depth: int) -> str:
    return "[" * depth + "]" * depth


def notice(fence: int, number: int, body: dict[str, Any]) -> ProposalNotice:
    return ProposalNotice(
        **RUN, fence=fence, worker="evil", proposal_id=f"p-{number}", shown_digest="0" * 64,
        kind="tool\x1b]0;owned\x07", title="read \x1b[2J\u202ea file", risk="none", body=body,
    )  # fmt: skip


def result(fence: int, commit: str, *steps: StepResult, **fields: Any) -> RunResult:
    return RunResult(
        **{**RUN, "worker": "evil", **fields}, fence=fence, status="ready", summary="all is well",
        commit=commit, branch=work_branch("T-1", 1, fence), steps=steps,
    )  # fmt: skip


def harmful(fence: int) -> list[BackMessage]:
    """Messages of the right form that hold what nobody should store, run or draw."""
    provisional = {"seq": 10**30, "digest": ""}
    return [
        JournalRows(**RUN, fence=fence, worker="evil", lines=(deep_text(100_000),)),
        JournalRows(**RUN, fence=fence, worker="evil", lines=(json.dumps(provisional),)),
        JournalRows(**RUN, fence=10**30, worker="evil", lines=("{}",)),
        JournalRows(task_id="T-99", run=1, fence=1, worker="evil", lines=("{}",)),
        JournalRows(**RUN, fence=fence + 1, worker="evil", lines=("{}",)),
        notice(fence, 0, {"fields": [["deep", DEEP]], "diffs": [{"path": "a", "before": 5}]}),
        notice(fence, 0, {"diffs": [{"path": "a", "before": {"x": 1}, "after": [2]}]}),
        *(notice(fence, number, {"fields": [["n", "x"]]}) for number in range(1, FLOOD)),
    ]


async def send_raw(queue: MessageQueue, kind: str, packed: bytes, part: str, name: str) -> None:
    headers = {"Cockpit-Message": name, "Cockpit-Part": part}
    await queue.stream.publish(queue.subjects.back("T-1", kind), packed, headers=headers)


async def test_harmful_messages_end_nothing_and_forged_steps_count_for_nothing(tmp_path):
    """Decisions are answered with what is no answer, and results are of steps that no task takes."""

    async def answer_wrongly(data: bytes) -> bytes:
        return b"\x00" + data

    async with near(tmp_path, lease_s=LEASE_S) as world:
        await world.begin(1)
        coordinator = world.coordinate()
        (sent,) = await world.until(lambda: world.runs("sent"))
        async with open_queue(world.scale(), name="evil") as queue:
            fence = await claim(queue, "evil")
            for number in range(20):
                await send_raw(queue, "result", b"never whole", "1/2", f"half-{number}")
            cut_off = zlib.compress(b"x" * 100_000)[:-20]
            await send_raw(queue, "result", cut_off, "1/1", "cut off")
            huge = json.loads(encode(result(fence, "a" * 40)))
            for name in ("tokens", "run", "fence"):
                body = json.dumps({**huge, name: 10**30}).encode()
                await send_raw(queue, "result", zlib.compress(body), "1/1", f"huge-{name}")
            for message in harmful(fence):
                kind = "rows" if isinstance(message, JournalRows) else "proposal"
                await queue.send_back(kind, message)
            async with queue.answer(queue.subjects.decide("T-1", 1, fence), answer_wrongly):
                most = remote_runs.MOST_WAITING
                await world.until(lambda: len(world.rows("proposal.created")) >= most)
                shown, *_ = world.store.read_now(proposals.select_pending)
                given = {"by": "person", "shown_digest": shown.shown_digest}
                world.store.write_now(
                    lambda tx: proposals.decide(tx, shown.proposal_id, "rejected", **given)
                )

                def is_answered() -> bool:
                    waiting = world.store.read_now(remote_runs.select_unanswered)
                    return shown.proposal_id not in [each.proposal_id for each in waiting]

                await world.until(is_answered)
            reviewed = StepResult("quality_review", "PASS", {"tx": 1, "outcome": "done"})
            base, branch = sent["commit"], work_branch("T-1", 1, fence)
            git(world.world.root, "push", "--quiet", "origin", f"{base}:refs/heads/{branch}")
            forged = result(fence, base, reviewed)
            await queue.send_back("result", msgspec.structs.replace(forged, worker="other"))
            await queue.send_back("result", forged)
        await world.until(lambda: world.runs("returned"))
        await world.until(lambda: world.run().state != "returned")
        assert world.statuses()["T-1"] != "done" and world.merged() == []
        assert "other" in [row["worker"] for row in world.runs("void")]
        assert most <= len(world.rows("proposal.created")) < FLOOD
        world.start_worker("honest")
        await world.end(coordinator)
        assert world.statuses() == {"T-1": "done"}, world.said
        assert [row["worker"] for row in world.runs("returned")][-1] == "honest"


def test_a_queue_serves_one_project_and_takes_what_fits(tmp_path):
    server = Server(tmp_path / "jetstream")
    server.start()
    scale = ScaleSettings(backend="nats", server=server.url, queue="shop")
    run = RunMessage(
        task_id="T-1", run=1, chain_id="ch-1", base_branch="b", base_commit="a" * 40, approve="reads",
        model=None, runner=None, work={}, backlog=({"description": "word " * 400_000},), handoffs=(),
    )  # fmt: skip

    async def play() -> None:
        async with open_queue(scale, name="one") as one, open_queue(scale, name="other") as other:
            await other.prepare()  # a worker, before there is a coordinator
            await one.prepare("project-1")
            await one.prepare("project-1")
            await other.prepare()
            with pytest.raises(QueueTaken, match="another project"):
                await other.prepare("project-2")
            assert await one.list_runs() == frozenset()
            await one.send_run(one.subjects.run("T-1", 1), run)
            assert await one.list_runs() == {one.subjects.run("T-1", 1)}
            (message,) = await fetch(await other.take_runs(), 1, 5)
            assert read_run(message.data) == run
            noise = msgspec.structs.replace(run, handoffs=({"summary": os.urandom(900_000).hex()},))
            with pytest.raises(RunTooLarge, match="T-1"):
                await one.send_run(one.subjects.run("T-2", 1), noise)

    try:
        asyncio.run(play())
    finally:
        server.kill()

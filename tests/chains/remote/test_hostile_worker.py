"""A worker that means harm: what it sends is refused, and the chain goes on with the others."""

from __future__ import annotations

import asyncio
import json
import os
import zlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from chains.remote.remote_world import LEASE_S, Machines, Server, machines
from chains.remote.test_remote_chain import wait_until

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
    Claim,
    ClaimAnswer,
    JournalRows,
    ProposalNotice,
    RunMessage,
    RunResult,
    StepResult,
    decode,
    encode,
    work_branch,
)
from cockpit.chains.remote.scale_settings import ScaleSettings
from cockpit.store.chains import remote_runs

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


async def attack(world: Machines, *, then: Callable[[], object]) -> int:
    """Take T-1 up without doing it, and send all sorts of harm; returns the number it was taken up under.

    Decisions are answered with what is no answer, as long as ``then`` takes.
    """

    async def answer_wrongly(data: bytes) -> bytes:
        return b"\x00" + data

    scale = ScaleSettings(backend="nats", server=world.server.url, queue="shop", lease_s=LEASE_S)
    async with open_queue(scale, name="evil") as queue:
        answer = await queue.request(queue.subjects.claim, encode(Claim("T-1", 1, "evil")))
        fence = decode(ClaimAnswer, answer).fence
        for number in range(20):
            await send_raw(queue, "result", b"never whole", "1/2", f"half-{number}")
        await send_raw(queue, "result", zlib.compress(b"x" * 100_000)[:-20], "1/1", "cut off")
        huge = json.loads(encode(result(fence, "a" * 40)))
        for field in ("tokens", "run", "fence"):
            body = json.dumps({**huge, field: 10**30}).encode()
            await send_raw(queue, "result", zlib.compress(body), "1/1", f"huge-{field}")
        for message in harmful(fence):
            kind = "rows" if isinstance(message, JournalRows) else "proposal"
            await queue.send_back(kind, message)
        deciding = queue.subjects.decide("T-1", 1, fence)
        async with queue.answer(deciding, answer_wrongly):
            await asyncio.to_thread(then)
    return fence


def test_harmful_messages_end_nothing(tmp_path):
    with machines(tmp_path, 1) as world:
        chains = world.chains
        running = world.work(chains.scenario(1))
        wait_until(lambda: chains.rows("remote.run.sent"))

        def decide() -> None:
            wait_until(lambda: len(chains.rows("proposal.created")) >= remote_runs.MOST_WAITING)
            names = [
                each["proposal_id"] for each in chains.project.json("proposals", "list", "--json")
            ]
            for name in names[:1]:
                text = chains.project.run("proposals", "show", name).stdout
                assert "\x1b" not in text and "\u202e" not in text
            chains.project.run("proposals", "reject", names[0])
            wait_until(lambda: len(chains.read(remote_runs.select_unanswered)) < len(names))

        fence = asyncio.run(attack(world, then=decide))
        world.start_worker("honest")
        code, output = chains.end(running)
        assert code == 0, (output, world.log("honest"))
        assert set(chains.statuses().values()) == {"done"}
        assert len(chains.rows("proposal.created")) == remote_runs.MOST_WAITING < FLOOD
        (returned,) = chains.rows("remote.run.returned")
        assert (returned["worker"], returned["fence"]) == ("honest", fence + 1)


def test_steps_that_no_task_takes_are_refused(tmp_path):
    with machines(tmp_path, 1) as world:
        chains = world.chains
        running = world.work(chains.scenario(1))
        wait_until(lambda: chains.rows("remote.run.sent"))
        (sent,) = chains.rows("remote.run.sent")
        base = sent["base_commit"]
        reviewed = StepResult("quality_review", "PASS", {"tx": 1, "outcome": "done", "step": "x"})

        async def forge() -> None:
            scale = ScaleSettings(backend="nats", server=world.server.url, queue="shop")
            async with open_queue(scale, name="evil") as queue:
                answer = await queue.request(queue.subjects.claim, encode(Claim("T-1", 1, "evil")))
                fence = decode(ClaimAnswer, answer).fence
                named = f"{base}:refs/heads/{work_branch('T-1', 1, fence)}"
                chains.project.git("push", "--quiet", "origin", named)
                forged = result(fence, base, reviewed)
                await queue.send_back("result", msgspec.structs.replace(forged, worker="other"))
                await queue.send_back("result", forged)

        asyncio.run(forge())
        wait_until(lambda: chains.rows("remote.run.returned"))
        wait_until(lambda: chains.read(lambda c: remote_runs.load(c, "T-1", 1)).state != "returned")
        chains.project.run("chain", "stop", "ch-1")
        _, output = chains.end(running)
        assert chains.statuses()["T-1"] != "done", output
        assert not chains.project.git("log", "--format=%s", "--merges", "cockpit/ch-1")
        assert [row["worker"] for row in chains.rows("remote.run.void")] == ["other"]


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

"""The bug's script under a person who does other things than the guide says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands.demo.demo_world import MAIN, git

from cockpit.commands.demo.demo_guide import BUG_WORDS
from cockpit.commands.demo.sample_project import Sample, shipped
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import Limits, RuntimeSettings
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.follow import follow
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.sessions import Session

pytestmark = pytest.mark.slow

Decide = Callable[[Runtime, Proposal, int], Coroutine[Any, Any, object]]
"""What a person does about the n-th proposal (from 1)."""


@dataclass
class Walk:
    """What came of a session."""

    session: Session
    proposals: Sequence[Proposal]

    @property
    def fates(self) -> list[tuple[str, str]]:
        return [(one.body.get("type", "context"), one.status) for one in self.proposals]


@asynccontextmanager
async def cockpit(sample: Sample) -> AsyncIterator[Runtime]:
    settings = RuntimeSettings(
        user_dir=sample.root.parent / "user", limits=Limits(max_waves=20, deadline_s=60)
    )
    async with open_runtime(locate_project(sample.root), settings) as runtime:
        yield runtime


def script(folder: Path) -> str:
    path = folder / "scenario.toml"
    path.write_bytes(shipped("scenario.toml").read_bytes().replace(b"pace = 0.012", b"pace = 0.0"))
    return f"script:{path}"


async def decide(runtime: Runtime, session_id: str, act: Decide) -> None:
    count = 0
    async for rows in follow(runtime.store, session_id=session_id):
        for row in rows:
            if row.action == Action.PROPOSAL_CREATED:
                count += 1
                identity = row.raw_detail()["proposal_id"]
                found = await runtime.store.read(lambda c, i=identity: proposals.load(c, i))
                if found.status == "pending":
                    await act(runtime, found, count)


async def walk(sample: Sample, act: Decide) -> Walk:
    async with cockpit(sample) as runtime:
        session_id = await runtime.start(
            BUG_WORDS, model=script(sample.root.parent), interactive=False
        )
        deciding = asyncio.create_task(decide(runtime, session_id, act))
        session = await runtime.run(session_id)
        deciding.cancel()
        await asyncio.gather(deciding, return_exceptions=True)
        found = await runtime.store.read(lambda c: proposals.select_for_session(c, session_id))
        return Walk(session, found)


async def approve(runtime: Runtime, proposal: Proposal, _: int) -> None:
    await runtime.approve(proposal.proposal_id, shown_digest=proposal.shown_digest)


def once(ways: dict[str, Decide]) -> Decide:
    """Do about the first proposal of each kind what ``ways`` says, and approve the rest."""

    async def act(runtime: Runtime, proposal: Proposal, count: int) -> None:
        await ways.pop(proposal.body.get("type", "context"), approve)(runtime, proposal, count)

    return act


async def discuss(runtime: Runtime, proposal: Proposal, _: int) -> None:
    await runtime.discuss(
        proposal.proposal_id, shown_digest=proposal.shown_digest, words="What for?"
    )


def committed(sample: Sample) -> list[str]:
    return git(sample.root, "diff", "--name-only", MAIN, "HEAD").splitlines()


STEPS = [
    ("context", "approved"),
    ("edit_file", "approved"),
    ("run", "approved"),
    ("edit_file", "approved"),
    ("run", "approved"),
    ("git_commit", "approved"),
]


async def test_each_step_is_proposed_again_when_it_was_discussed(sample: Sample) -> None:
    ways = {kind: discuss for kind, _ in STEPS}
    ended = await walk(sample, once(ways))
    assert ended.fates == [
        fate
        for at, step in enumerate(STEPS)
        for fate in ([(step[0], "discussed")] if step not in STEPS[:at] else []) + [step]
    ]
    assert ended.proposals[1].revises == ended.proposals[0].proposal_id
    assert (ended.session.status, ended.session.result["status"]) == ("completed", "done")
    assert ended.session.task_type == "bug"
    assert committed(sample) == ["parcel/rates.py", "tests/test_rates.py"]
    assert git(sample.root, "log", "-1", "--format=%an %s").startswith("cockpit demo Charge")

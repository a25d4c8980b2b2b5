"""The real programs over ACP, with a loopback server as their model: ``make test-agents``.

Each agent that is installed edits a file that is approved, is refused a command with words, is closed and
taken up again, is interrupted, killed, and ended while it asks.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agents.acp_client import acp_world
from agents.acp_client.acp_world import Acp, open_acp
from agents.real.real_world import ALL, INSTALLED, PATHS, PATIENCE_S, model, prepare
from loopback.server import Loopback

from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.core.errors import CockpitError
from cockpit.core.processes import is_process_alive
from cockpit.store.sessions.proposals import Proposal

pytestmark = [pytest.mark.slow, pytest.mark.agents]

CONFINED = [name for name in INSTALLED if name in ("claude", "codex", "qwen")]
"""Tried in the sandbox as well; the loopback server counts as their provider by their own variable."""
WITHOUT_USAGE = ("qwen", "kimi")
"""They say nothing of tokens when a turn ends."""
WAYS = [
    *(pytest.param((name, False), id=name) for name in INSTALLED),
    *(pytest.param((name, True), id=f"{name} confined") for name in CONFINED),
]


@dataclass
class Real:
    """A real agent in a project, and the server that plays its model."""

    name: str
    acp: Acp
    server: Loopback

    async def start(self, words: str) -> str:
        return await self.acp.runtime.start_agent(self.name, words, interactive=True)

    def permissions(self) -> list[Proposal]:
        """Return the permissions that wait; the change of a worktree waits beside them."""
        return [each for each in self.acp.pending() if each.kind == "permission"]

    async def asked(self, count: int) -> list[Proposal]:
        """Wait until so many permissions wait."""
        return await self.acp.until(lambda: len(waiting := self.permissions()) >= count and waiting)

    async def decide(self, session_id: str, words: str = "") -> Any:
        """Run the session, approve what it asks for, or reject it with ``words``; returns the session."""
        task = self.acp.begin(session_id)
        asking = asyncio.ensure_future(self.acp.asked())
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait([task, asking], return_when=asyncio.FIRST_COMPLETED)
            assert asking.done(), (self.acp.rows(session_id)[-5:], self.acp.said(session_id))
            (proposal,) = asking.result()
            await (self.acp.reject(proposal, words) if words else self.acp.approve(proposal))
            return await task


@pytest.fixture(params=WAYS)
async def real(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Real]:
    name, confined = request.param
    monkeypatch.setattr(acp_world, "PATIENCE_S", PATIENCE_S)
    home = tmp_path / "home"
    home.mkdir()
    async with Loopback() as server:
        variables = prepare(name, home, server)
        for variable, value in {"HOME": str(home), "PATH": PATHS, **variables}.items():
            monkeypatch.setenv(variable, value)
        choices = SandboxChoices() if confined else SandboxChoices(agents=False)
        async with open_acp(tmp_path, sandbox=choices) as acp:
            server.play([model(name)] * 80)
            yield Real(name, acp, server)


async def test_an_edit_is_approved_a_command_refused_and_the_session_taken_up(real: Real) -> None:
    acp, root = real.acp, real.acp.world.root
    session_id = await real.start("edit now 1")
    session = await real.decide(session_id)
    assert (root / "made.txt").exists() and session.status == "waiting"
    await acp.runtime.say(session_id, "command now 2")
    session = await real.decide(session_id, "use the Makefile")
    assert not (root / "ran.txt").exists()
    assert acp.said(session_id)[-1].endswith("I will use the Makefile.")
    assert session.input_tokens > 0 or real.name in WITHOUT_USAGE
    await acp.runtime.agents().close()
    (root / "made.txt").unlink()
    await acp.runtime.say(session_id, "edit now 3")
    await real.decide(session_id)
    assert (root / "made.txt").exists()
    ended = acp.rows(session_id, "runner.ended")
    assert len({row["agent_session"] for row in ended}) == 1, "the same session of the agent"


async def test_an_interrupted_agent_withdraws_and_a_killed_one_fails(real: Real) -> None:
    acp = real.acp
    session_id = await real.start("command now 1")
    task = acp.begin(session_id)
    async with asyncio.timeout(PATIENCE_S):
        await acp.asked()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert acp.pending() == [] and acp.load(session_id).status == "stopped"
    await acp.runtime.say(session_id, "command now 2")
    task = acp.begin(session_id)
    async with asyncio.timeout(PATIENCE_S):
        await acp.asked()
        os.killpg(int(acp.load(session_id).pid.partition("/")[0]), signal.SIGKILL)
        session = await task
    assert session.status == "failed" and acp.pending() == []
    assert not (acp.world.root / "ran.txt").exists()


async def test_two_at_once_ask_in_one_queue_and_end_while_they_ask(real: Real) -> None:
    acp = real.acp
    ids = [await real.start(f"command now {place}") for place in range(2)]
    tasks = [acp.begin(session_id) for session_id in ids]
    async with asyncio.timeout(PATIENCE_S):
        for proposal in await real.asked(2):
            await acp.approve(proposal)
        assert {(await task).status for task in tasks} == {"waiting"}
    assert (acp.world.root / "ran.txt").exists()
    for place, session_id in enumerate(ids):
        await acp.runtime.say(session_id, f"edit now {place + 2}")
    tasks = [acp.begin(session_id) for session_id in ids]
    async with asyncio.timeout(PATIENCE_S):
        for proposal in await real.asked(2):
            # The protocol carries no changed input: cockpit says so, and what was shown stays.
            with pytest.raises(CockpitError, match="chang"):
                await acp.runtime.edit(
                    proposal.proposal_id, shown_digest=proposal.shown_digest, text="other\n"
                )
        pids = [acp.load(session_id).pid for session_id in ids]
        assert all(map(is_process_alive, pids))
        await acp.runtime.agents().close()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert real.permissions() == [], "nothing waits for an agent that is gone"
    # The second one works in a worktree of its own; what it did there still waits for the user.
    (change,) = acp.pending()
    assert (change.body["type"], change.session_id) == ("take_worktree", ids[1])
    assert not any(map(is_process_alive, pids))
    assert not (acp.world.root / "made.txt").exists()


def test_there_is_an_agent_to_try() -> None:
    assert INSTALLED, f"none of {', '.join(ALL)} is on the PATH or in COCKPIT_AGENTS"

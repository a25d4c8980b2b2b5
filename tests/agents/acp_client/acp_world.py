"""A project whose agent is the scripted one, driven as the command line and the screen drive it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.taskrun_world import World

from cockpit.agents.acp_client.running_agents import RunningAgents
from cockpit.loop.runtime import Runtime, runtime_over
from cockpit.loop.runtime_settings import Limits, RuntimeSettings
from cockpit.store.journal import journal
from cockpit.store.sessions import messages, proposals, sessions
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.sessions import Session
from cockpit.tasks.agent_changes.carry_out import carry_out
from cockpit.tasks.agent_changes.change_effects import CHANGE_EFFECTS
from cockpit.tasks.agent_changes.propose_change import propose_change
from cockpit.tasks.worktree import choose_folder

AGENT = Path(__file__).with_name("scripted_agent.py")
PATIENCE_S = 60.0


@dataclass
class Acp:
    """A runtime over a project, and the scripted agent in its registry."""

    world: World
    runtime: Runtime
    config: Path
    started: list[asyncio.Task[Any]] = field(default_factory=list)

    def switch(self, name: str = "scripted", **switches: Any) -> str:
        """Write the agent's file with these switches; returns its name."""
        text = (
            f'title = "Scripted"\n[acp]\ncommand = {json.dumps([sys.executable, "-S", str(AGENT)])}\n'
            f"mode = {json.dumps(switches.pop('mode', ''))}\n"
            f"environment = {{ SCRIPTED = '{json.dumps(switches)}' }}\n"
        )
        if switches.get("keeps"):
            # It runs in the sandbox, where it sees the project and a home of its own.
            inside = shutil.copy(AGENT, self.world.root)
            text = text.replace(str(AGENT), inside) + '[sandbox]\nsessions = [".scripted"]\n'
        folder = self.config / "agents"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        return name

    async def start(self, words: str, *, policy: str = "ask", **options: Any) -> str:
        agent = options.pop("agent", "scripted")
        if not (self.config / "agents" / f"{agent}.toml").exists():
            self.switch(agent)
        options.setdefault("interactive", False)
        return await self.runtime.start_agent(agent, words, policy=policy, **options)

    async def run(self, words: str, **options: Any) -> Session:
        """Start a session and run it to its end; without an answer to what it asks it would hang."""
        session_id = await self.start(words, **options)
        async with asyncio.timeout(PATIENCE_S):
            return await self.runtime.run(session_id)

    def begin(self, session_id: str) -> asyncio.Task[Session]:
        """Run a session beside the test."""
        task = asyncio.create_task(self.runtime.run(session_id))
        self.started.append(task)
        return task

    async def until(self, ready: Callable[[], Any]) -> Any:
        """Wait for the first true value of ``ready``, which reads the store."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.runtime.engine.change_waiter.wait_for(lambda: ready() or None)

    def pending(self) -> list[Proposal]:
        return self.world.store.read_now(
            lambda seen: [
                proposals.load(seen, identity)
                for (identity,) in seen.execute(
                    "SELECT proposal_id FROM proposals WHERE status='pending' ORDER BY rowid"
                ).fetchall()
            ]
        )

    async def asked(self, count: int = 1) -> list[Proposal]:
        return await self.until(lambda: len(found := self.pending()) >= count and found)

    async def approve(self, proposal: Proposal) -> None:
        await self.runtime.approve(proposal.proposal_id, shown_digest=proposal.shown_digest)

    async def reject(self, proposal: Proposal, words: str = "") -> None:
        await self.runtime.reject(
            proposal.proposal_id, shown_digest=proposal.shown_digest, reason=words
        )

    async def discuss(self, proposal: Proposal, words: str) -> None:
        await self.runtime.discuss(
            proposal.proposal_id, shown_digest=proposal.shown_digest, words=words
        )

    def load(self, session_id: str) -> Session:
        return self.world.store.read_now(lambda seen: sessions.load(seen, session_id))

    def said(self, session_id: str) -> list[str]:
        rows = self.world.store.read_now(
            lambda seen: messages.select_for_session(seen, session_id, role="agent")
        )
        return [row.text for row in rows]

    def rows(self, session_id: str, action: str = "runner.") -> list[dict[str, Any]]:
        """The details of a session's journal rows whose action begins with ``action``, with it."""
        rows = self.world.store.read_now(
            lambda seen: journal.rows(seen, after=0, session_id=session_id, limit=100_000)
        )
        return [
            {"action": row.action, **row.raw_detail()}
            for row in rows
            if row.action.startswith(action)
        ]


@asynccontextmanager
async def open_acp(
    tmp_path: Path, *, world: World | None = None, **settings: Any
) -> AsyncIterator[Acp]:
    """Open a project, perhaps one that is there, with a runtime that drives agents."""
    world = world or World.made(tmp_path)
    config = tmp_path / "config"
    choices = RuntimeSettings(
        user_dir=config,
        environment=dict(os.environ),
        external_agents=lambda: RunningAgents(propose_change, choose_folder),
        approval_effects=CHANGE_EFFECTS,
        carry_out=carry_out,
        limits=Limits(deadline_s=settings.pop("deadline_s", 600.0)),
        **settings,
    )
    try:
        async with runtime_over(world.store, world.place, choices) as runtime:
            acp = Acp(world, runtime, config)
            try:
                yield acp
            finally:
                for task in acp.started:
                    task.cancel()
                await asyncio.gather(*acp.started, return_exceptions=True)
    finally:
        world.store.close()

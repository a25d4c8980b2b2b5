"""One prompt to an ACP agent without a user who follows it: a role of a chain's task.

See ``docs/reference/agents.md``, permissions of a runner.
"""

from __future__ import annotations

import asyncio
import time

from msgspec import Struct

from cockpit.agents.acp_client.agent_session import AgentSession, Turn
from cockpit.agents.acp_client.open_session import open_agent_session
from cockpit.agents.registry.known_agents import Agent
from cockpit.agents.runs.run_rows import complete_session
from cockpit.core.errors import CockpitError
from cockpit.loop.permissions.withdrawal import STOP
from cockpit.loop.wave_context import Engine


class AgentTooSlow(CockpitError):
    """The agent did not end its turn in its time."""

    code = "runner_crashed"


class PromptEnd(Struct, frozen=True):
    """How the prompt ended; the session says the rest."""

    failed: bool
    message: str
    """What went wrong, or what was asked for in vain; empty for nothing."""


async def run_acp_prompt(
    engine: Engine,
    agent: Agent,
    session_id: str,
    prompt: str,
    *,
    scopes: frozenset[str],
    timeout_s: float,
) -> PromptEnd:
    """Start the agent, give it ``prompt``, and end the session as its turn ended.

    A permission that nobody decided in time ends the session as blocked, with what was asked. ``timeout_s``
    is the agent's own time, without that of waiting for the user. Cancelled, it cancels the turn and leaves
    the session stopped. Raises what :func:`~cockpit.agents.acp_client.open_session.open_agent_session`
    raises, and :class:`AgentTooSlow`.
    """
    async with open_agent_session(
        engine, agent, session_id, interactive=False, scopes=scopes
    ) as opened:
        turn = asyncio.ensure_future(opened.run_prompt(prompt))
        try:
            if not await _wait(turn, opened, timeout_s):
                raise AgentTooSlow(
                    f"{agent.title} did not end its turn within {timeout_s:g} s and was ended."
                )
        finally:
            turn.cancel(STOP)
            await asyncio.gather(turn, return_exceptions=True)
        end = turn.result()
        late = opened.context.unanswered
        if not late:
            await opened.finish()
            return PromptEnd(end.reason == "failed", end.message)
    words = f"It asked for {late!r}, and the deadline passed without a decision. It did not happen."
    await engine.store.write(lambda tx: complete_session(tx, session_id, "blocked", words))
    return PromptEnd(False, words)


async def _wait(turn: asyncio.Future[Turn], opened: AgentSession, timeout_s: float) -> bool:
    """Wait for the turn's end; False when the agent's own time is used up."""
    begun = time.monotonic()
    while not turn.done():
        left = timeout_s + opened.context.waited_s() - (time.monotonic() - begun)
        if left <= 0:
            return False
        await asyncio.wait([turn], timeout=left)
    return True

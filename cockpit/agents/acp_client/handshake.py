"""A handshake: start an agent, exchange versions, and end it again.

See ``docs/reference/agents.md``, registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cockpit.agents.acp_client.agent_connection import Abilities, AgentConnection
from cockpit.agents.acp_client.agent_variables import agent_environment
from cockpit.agents.acp_client.login_ways import LoginWay
from cockpit.agents.registry.known_agents import Agent
from cockpit.core.json_fields import JsonObject

LOGIN_S = 600.0
"""Seconds that a login may take: the user is in a browser meanwhile."""


async def log_in(
    agent: Agent, environment: Mapping[str, str], cwd: Path, choose: Callable[[Abilities], LoginWay]
) -> LoginWay:
    """Start ``agent`` and let it log in the way that ``choose`` picks; returns that way.

    Raises ``AgentFailed``, also for a login that fails or takes too long, and ``ProgramMissing``.
    """
    connection = await _open(agent, environment, cwd)
    try:
        way = choose(await connection.initialize())
        await connection.request("authenticate", {"methodId": way.id}, LOGIN_S)
        return way
    finally:
        await connection.close()


async def shake_hands(agent: Agent, environment: Mapping[str, str], cwd: Path) -> Abilities:
    """Start ``agent``, ask it to initialize, and end it. Raises ``AgentFailed`` and ``ProgramMissing``."""
    connection = await _open(agent, environment, cwd)
    try:
        return await connection.initialize()
    finally:
        await connection.close()


async def _open(agent: Agent, environment: Mapping[str, str], cwd: Path) -> AgentConnection:
    return await AgentConnection.open(
        agent,
        agent.acp.command,
        cwd=cwd,
        environment=agent_environment(agent, environment, {}),
        serve=_serve_nothing,
        on_update=_ignore,
        on_odd=_ignore,
    )


async def _serve_nothing(method: str, params: JsonObject) -> Mapping[str, Any]:
    raise NotImplementedError


async def _ignore(_: object) -> None:
    return None

"""A handshake: start an agent, exchange versions, and end it again.

See ``docs/reference/agents.md``, agents.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cockpit.agents.acp.agent_connection import Abilities, AgentConnection
from cockpit.agents.acp.agent_variables import agent_environment
from cockpit.agents.registry.known_agents import Agent
from cockpit.core.json_fields import JsonObject


async def shake_hands(agent: Agent, environment: Mapping[str, str], cwd: Path) -> Abilities:
    """Start ``agent``, ask it to initialize, and end it. Raises ``AgentFailed`` and ``ProgramMissing``."""
    connection = await AgentConnection.open(
        agent,
        agent.acp.command,
        cwd=cwd,
        environment=agent_environment(agent, environment, {}),
        serve=_serve_nothing,
        on_update=_ignore,
        on_odd=_ignore,
    )
    try:
        return await connection.initialize()
    finally:
        await connection.close()


async def _serve_nothing(method: str, params: JsonObject) -> Mapping[str, Any]:
    raise NotImplementedError


async def _ignore(_: object) -> None:
    return None

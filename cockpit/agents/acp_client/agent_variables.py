"""The variables that an ACP agent starts with. See ``docs/reference/agents.md``."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.act.sandbox.variables import clean_environment
from cockpit.agents.registry.known_agents import Agent
from cockpit.agents.runs.agent_command_line import NESTED, PROXIES


def agent_environment(
    agent: Agent, environment: Mapping[str, str], ours: Mapping[str, str]
) -> dict[str, str]:
    """Return the agent's variables: harmless ones, proxies, its own, its provider's keys, and ``ours``."""
    proxies = (*PROXIES, *(name.lower() for name in PROXIES))
    own = agent.sandbox.variables if agent.sandbox is not None else ()
    own = (*own, *agent.acp.variables, *agent.login.variables)
    kept = clean_environment(environment, (*proxies, *own))
    clean = {name: value for name, value in kept.items() if name not in NESTED}
    return {**clean, **agent.acp.environment, **ours}

"""Runners that need no configuration, because cockpit knows how their agents ask for each permission.

Claude Code speaks over its own standard streams, every other agent of the registry over ACP. See
``docs/reference/agents.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cockpit.agents.registry.known_agents import AgentInvalid, load_agents
from cockpit.agents.runs.agent_command_line import RunnerMissing
from cockpit.loop.runtime_settings import EMBEDDED, RunnerSettings, RuntimeSettings

ACP_PREFIX = "acp:"
"""Starts the name of a runner that is an ACP agent of the registry."""
_MCP_TOOLS = "mcp__ohno__*"
_CLAUDE = (
    *("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
    *("--include-partial-messages", "--permission-prompt-tool", "stdio"),
    *("--mcp-config", "{mcp_config}", "--strict-mcp-config", "--settings", "{hooks}"),
    *(
        "--setting-sources",
        "user",
        "--allowedTools",
        _MCP_TOOLS,
        "--json-schema",
        "{answer_schema}",
    ),
)


def driven_command(command: Sequence[str]) -> tuple[str, ...]:
    """Return Claude Code's program and the user's own arguments, followed by those that it needs to ask."""
    return (*command, *_CLAUDE)


def find_driven_runner(name: str, user_dir: Path) -> RunnerSettings | None:
    """Return the runner that needs no configuration, with the variables of its login; None for others.

    ``acp:NAME`` is an agent of the registry, with the user's own in ``user_dir``; ``codex`` is ``acp:codex``.
    Raises ``AgentInvalid`` for an agent that is not there.
    """
    if name == "claude":
        login = load_agents().find(name).login
        return RunnerSettings(name, driven_command((name,)), env=login.variables, protocol="stdio")
    if name != "codex" and not name.startswith(ACP_PREFIX):
        return None
    agent = load_agents(user_dir).find(name.removeprefix(ACP_PREFIX))
    return RunnerSettings(name, agent.acp.command, env=agent.login.variables, protocol="acp")


def find_runner(settings: RuntimeSettings, name: str | None) -> RunnerSettings | None:
    """Return the runner of that name; None is the built-in agent.

    Raises :class:`~cockpit.agents.runs.agent_command_line.RunnerMissing` for a name that is not configured.
    """
    if name is None or name == EMBEDDED:
        return None
    try:
        runner = settings.runners.get(name) or find_driven_runner(name, settings.user_dir)
    except AgentInvalid as error:
        raise RunnerMissing(str(error)) from error
    if runner is None:
        driven = ("claude", "codex", f"{ACP_PREFIX}NAME")
        available = ", ".join(dict.fromkeys([EMBEDDED, *settings.runners, *driven]))
        raise RunnerMissing(
            f"There is no runner {name!r}; available: {available}. Add one to your configuration:"
            f" [runner.{name}] command = [...]."
        )
    return runner

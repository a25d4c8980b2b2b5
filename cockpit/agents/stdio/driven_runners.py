"""Runners whose agents cockpit drives by a protocol of their own: they ask for each permission.

Claude Code and Codex need no configuration: their programs are known by the registry. See
``docs/reference/agents.md``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from cockpit.agents.registry.known_agents import AgentInvalid, load_agents
from cockpit.agents.runs.agent_command_line import RunnerMissing
from cockpit.core.state_folder import PLACE_VARIABLES
from cockpit.loop.runtime_settings import EMBEDDED, RunnerSettings, RuntimeSettings

Protocol = Literal["stdio", "app-server"]

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
_CODEX = (
    *("app-server", "-c", "mcp_servers.ohno.command={mcp_program}"),
    *("-c", "mcp_servers.ohno.args={mcp_arguments}"),
    # Codex starts servers without its own variables.
    *("-c", f"mcp_servers.ohno.env_vars={json.dumps(['COCKPIT_TOKEN', *PLACE_VARIABLES])}"),
    *("-c", 'mcp_servers.ohno.default_tools_approval_mode="approve"'),
)
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {"stdio": _CLAUDE, "app-server": _CODEX}
_BUILT_IN: Mapping[str, Protocol] = {"claude": "stdio", "codex": "app-server"}


def driven_command(protocol: str, command: Sequence[str]) -> tuple[str, ...]:
    """Return the program and the user's own arguments, followed by those that the protocol needs."""
    return (*command, *_ARGUMENTS[protocol])


def find_driven_runner(name: str, user_dir: Path) -> RunnerSettings | None:
    """Return the runner that needs no configuration, with the variables of its login; None for others.

    ``acp:NAME`` is an agent of the registry, with the user's own in ``user_dir``. Raises ``AgentInvalid``
    for an agent that is not there.
    """
    if name.startswith(ACP_PREFIX):
        agent = load_agents(user_dir).find(name.removeprefix(ACP_PREFIX))
        return RunnerSettings(name, agent.acp.command, env=agent.login.variables, protocol="acp")
    if name not in _BUILT_IN:
        return None
    protocol = _BUILT_IN[name]
    login = load_agents().find(name).login
    runner = RunnerSettings(name, (name,), env=login.variables, protocol=protocol)
    return replace(runner, command=driven_command(protocol, runner.command))


def driven_names() -> tuple[str, ...]:
    """Return the names of the runners that need no configuration."""
    return (*_BUILT_IN, f"{ACP_PREFIX}NAME")


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
        available = ", ".join(dict.fromkeys([EMBEDDED, *settings.runners, *driven_names()]))
        raise RunnerMissing(
            f"There is no runner {name!r}; available: {available}. Add one to your configuration:"
            f" [runner.{name}] command = [...]."
        )
    return runner

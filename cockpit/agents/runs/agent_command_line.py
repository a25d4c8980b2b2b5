"""The command line and environment of an external agent.

Placeholders are replaced word by word and no shell is involved, so a task's text cannot add words. See
``docs/reference/agents.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cockpit.act.sandbox.variables import clean_environment
from cockpit.agents.registry.known_agents import Agent, recognise_agent
from cockpit.core.errors import CockpitError
from cockpit.core.project.own_programs import find_program
from cockpit.loop.runtime_settings import RunnerSettings

PLACEHOLDERS = (
    *("prompt", "prompt_file", "worktree", "task", "mcp_config", "mcp_program", "mcp_arguments"),
    *("hooks", "session", "answer_schema"),
)
"""Placeholders of a command. Without the first two, the prompt comes on standard input."""

LONGEST_WORD = 120_000
"""Bytes of one argument, just below the kernel's limit."""

_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")
NESTED = frozenset(("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_PROJECT_DIR", "CODEX_SANDBOX"))
"""Variables set by an agent that may have started cockpit; the agent started here would misread them."""


class RunnerError(CockpitError):
    """A runner cannot be used; the message says why and what to do."""

    code = "runner"


class RunnerMissing(RunnerError):
    """The runner is not configured, or its program cannot be started; no task is at fault."""

    code = "runner_missing"


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
"""An agent reaches its model's provider as the user does, password of the proxy included."""


def placeholders_in(runner: RunnerSettings) -> frozenset[str]:
    """Return the placeholders in the runner's command."""
    return frozenset(name for word in runner.command for name in _PLACEHOLDER.findall(word))


def build_argv(
    runner: RunnerSettings, values: Mapping[str, str], path: str | None = None
) -> tuple[str, ...]:
    """Return the command with ``values`` in place of its placeholders, its program by absolute path.

    ``path`` is the PATH of the agent's environment (None: this process's). Placeholders inside a
    value stay text. Raises :class:`RunnerError`.
    """
    words = tuple(_PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in runner.command)
    if any("\0" in word for word in words):
        raise RunnerError(
            f"The prompt for runner {runner.name} contains a NUL character, which an argument cannot."
            " Remove {prompt} from its command; the prompt then comes on standard input."
        )
    if any(len(word.encode("utf-8", "replace")) > LONGEST_WORD for word in words):
        raise RunnerError(
            f"The prompt is too long to be an argument of runner {runner.name}. Remove {{prompt}} from"
            " its command, and the prompt comes on standard input; or use {prompt_file}."
        )
    program = find_program(words[0], path)
    if program is None:
        raise RunnerMissing(
            f"{words[0]}, the program of runner {runner.name}, is not on the PATH outside projects."
            f" Install it, or name it by its absolute path in [runner.{runner.name}] command."
        )
    return (program, *words[1:])


def build_environment(
    runner: RunnerSettings, environment: Mapping[str, str], ours: Mapping[str, str]
) -> dict[str, str]:
    """Return the agent's variables: the harmless ones of ``environment``, the runner's, and ``ours``."""
    proxies = (*PROXIES, *(name.lower() for name in PROXIES))
    agent = recognise_agent(runner.command)
    own = agent.variables if agent is not None else ()
    named = clean_environment(environment, (*proxies, *own, *runner.env))
    kept = {name: value for name, value in named.items() if name not in NESTED}
    return {**kept, **ours}


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

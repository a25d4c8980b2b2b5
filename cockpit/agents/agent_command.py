"""The command of a runner: placeholders filled in, the environment cleaned.

Words stay words: no shell reads them, whatever a task's text holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cockpit.act.workspace import clean_environment
from cockpit.core.errors import CockpitError
from cockpit.loop.runtime_settings import RunnerSettings

PLACEHOLDERS = ("prompt", "prompt_file", "worktree", "task", "mcp_config", "hooks", "session")
"""What a command may ask for. Without the first two the prompt comes on standard input."""

LONGEST_WORD = 120_000
"""Bytes of one argument; the kernel takes little more."""

_ASKED = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")
_NESTED = frozenset(("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_PROJECT_DIR", "CODEX_SANDBOX"))
"""Set by an agent that cockpit itself may have been started from; another one would misread them."""


class RunnerError(CockpitError):
    """A runner cannot be used; the message says which, why and what to do."""

    code = "runner"


class RunnerMissing(RunnerError):
    """Nobody configured that runner, or its program cannot be started: no task is to blame for it."""

    code = "runner_missing"


def placeholders_in(runner: RunnerSettings) -> frozenset[str]:
    """The placeholders that the command names."""
    return frozenset(name for word in runner.command for name in _ASKED.findall(word))


def build_argv(runner: RunnerSettings, values: Mapping[str, str]) -> tuple[str, ...]:
    """The command with ``values`` in place of its placeholders, which are read once and not again in
    what they give. Raises :class:`RunnerError`."""
    words = tuple(_ASKED.sub(lambda match: values[match[1]], word) for word in runner.command)
    if any("\0" in word for word in words):
        raise RunnerError(
            f"The prompt for runner {runner.name} holds a NUL character, which no argument can."
            " Leave {prompt} out of its command: it comes on standard input then."
        )
    if any(len(word.encode("utf-8", "replace")) > LONGEST_WORD for word in words):
        raise RunnerError(
            f"The prompt is too long to be an argument of runner {runner.name}. Leave {{prompt}} out of"
            " its command: it comes on standard input then; or use {prompt_file}."
        )
    return words


def build_environment(
    runner: RunnerSettings, environment: Mapping[str, str], ours: Mapping[str, str]
) -> dict[str, str]:
    """The variables that the agent sees: ``environment`` without what looks like a secret, those that
    the runner names, and ``ours``."""
    kept = {
        name: value for name, value in clean_environment(environment).items() if name not in _NESTED
    }
    named = {name: environment[name] for name in runner.env if name in environment}
    return {**kept, **named, **ours}

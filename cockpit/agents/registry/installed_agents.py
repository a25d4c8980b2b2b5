"""Which agents are installed and logged in, as far as can be told without a network or a start.

See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from cockpit.access.run_program import ProgramMissing, run_program
from cockpit.agents.registry.known_agents import Agent
from cockpit.core.errors import CockpitError
from cockpit.core.project.own_programs import find_program

LoginState = Literal["yes", "no", "unknown"]
_VERSION = re.compile(r"(?<!\d)\d++(?:\.\d++)++[A-Za-z0-9.+-]{0,40}", re.ASCII)
_VERSION_S = 20.0


class Installation(Struct, frozen=True):
    """One agent on this machine."""

    agent: Agent
    program: str
    """Where its program is; empty when it is not installed."""
    login: LoginState
    """``yes`` by a file of its login or a key, ``unknown`` where cockpit cannot tell."""
    login_by: str
    """The file or the variable that says so."""


def find_installation(agent: Agent, environment: Mapping[str, str]) -> Installation:
    """Look for the agent's program on the PATH and for its login. Starts nothing."""
    program = find_program(agent.acp.command[0], environment.get("PATH")) or ""
    home = Path(environment.get("HOME") or "/")
    needs = agent.sandbox
    variable, folder = needs.folder if needs is not None else ("", "")
    for name in agent.login.variables:
        if environment.get(name):
            return Installation(agent, program, "yes", name)
    for name in agent.login.files:
        inside = name.removeprefix(f"{folder}/")
        elsewhere = environment.get(variable, "") if variable and inside != name else ""
        if (Path(elsewhere) / inside if elsewhere else home / name).is_file():
            return Installation(agent, program, "yes", f"~/{name}")
    # Without a file to look for, the login may be in the system's keyring.
    return Installation(agent, program, "no" if agent.login.files else "unknown", "")


async def read_version(installation: Installation, environment: Mapping[str, str]) -> str:
    """Return the version that the program prints; empty where it prints none. Starts it."""
    try:
        result = await run_program(
            [installation.program, "--version"],
            cwd=Path.cwd(),
            env=dict(environment),
            timeout_s=_VERSION_S,
        )
    except (ProgramMissing, CockpitError):
        return ""
    match = _VERSION.search((result.stdout + result.stderr)[:4_000].decode("utf-8", "replace"))
    return match[0] if match else ""

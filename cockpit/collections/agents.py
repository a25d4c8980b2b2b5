"""External agents: known, installed, logged in. Listing them starts no agent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cockpit.collections.collection import Collection, Listed, View
from cockpit.core.errors import NotFound

if TYPE_CHECKING:
    from cockpit.agents.registry.installed_agents import Installation


def _read(view: View) -> Listed[Installation]:
    from cockpit.agents.registry.installed_agents import find_installation
    from cockpit.agents.registry.known_agents import load_agents

    registry = load_agents(view.user_dir)
    installations = [find_installation(agent, os.environ) for agent in registry.agents.values()]
    installations.sort(key=lambda entry: (not entry.program, entry.agent.name))
    return Listed(installations, [f"Not used: {problem}" for problem in registry.problems])


def _find(view: View, name: str) -> Installation:
    from cockpit.agents.registry.installed_agents import find_installation
    from cockpit.agents.registry.known_agents import load_agents

    agents = load_agents(view.user_dir).agents
    if name not in agents:
        raise NotFound(f"There is no agent {name}. There are {', '.join(sorted(agents))}.")
    return find_installation(agents[name], os.environ)


def describe_agent(entry: Installation) -> dict[str, Any]:
    """Return an agent as JSON."""
    agent = entry.agent
    return {
        "name": agent.name,
        "title": agent.title,
        "command": list(agent.acp.command),
        "installed": bool(entry.program),
        "program": entry.program,
        "login": entry.login,
        "login_by": entry.login_by,
        "login_how": agent.login.how,
        "install": agent.acp.install,
        "tried": agent.acp.tried,
        "sandbox": agent.sandbox is not None,
        "notes": agent.acp.notes,
        "docs": agent.docs,
        "source": agent.source,
    }


def say_how_to_install(entry: Installation) -> str:
    """Return how an agent that is not installed is."""
    agent = entry.agent
    if agent.acp.install:
        return agent.acp.install
    return f"see {agent.docs}" if agent.docs else "your own agent: its command is not on the PATH"


COLLECTION: Collection[Installation] = Collection(
    name="agents",
    command="agents",
    title="Agents",
    summary="Manage external agents.",
    help="""Manage external agents that speak the Agent Client Protocol.

    `cockpit run --agent NAME TASK` starts one. Listing them starts no agent.
    """,
    examples=("cockpit agents", "cockpit agents claude", "cockpit agents check claude"),
    row="NAME",
    sample="claude",
    columns={
        "AGENT": lambda entry: entry.agent.name,
        "INSTALLED": lambda entry: "yes" if entry.program else "no",
        "LOGIN": lambda entry: entry.login if entry.program else "–",
        "TRIED": lambda entry: entry.agent.acp.tried or "no",
        "INSTALL": lambda entry: "" if entry.program else say_how_to_install(entry),
    },
    read=_read,
    find=_find,
    none="No agents.",
    body=describe_agent,
    source="files",
    synonyms="claude codex acp external",
    state=lambda entry: "active" if entry.program else "gone",
    line=lambda entry: entry.agent.title,
    about=lambda entry: (
        f"login: {entry.login}" if entry.program else f"not installed: {say_how_to_install(entry)}"
    ),
    reads_files=True,
)

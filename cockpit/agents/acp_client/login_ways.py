"""An agent's ways to log in, as it lists them, and what the user does for each.

cockpit never gives an agent a key and starts no program for a login by itself. See
``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.agents.registry.known_agents import Agent
from cockpit.core.json_fields import JsonObject, get_object, get_objects, get_text
from cockpit.core.secrets import mask

_MOST_WAYS = 20
_MOST_WORDS = 40
_LONGEST = 300
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)


class LoginWay(Struct, frozen=True):
    """One way to log in."""

    id: str
    """The agent's name of it."""
    name: str
    kind: str
    """``agent``: it logs in by itself; ``terminal``: by its program in a terminal; ``env_var``: by
    variables; or a kind that cockpit does not know."""
    text: str = ""
    """What the agent says of it."""
    arguments: tuple[str, ...] = ()
    """What is added to the agent's command for a login in a terminal."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables of a login in a terminal."""
    variables: tuple[str, ...] = ()
    """Variables that hold its keys."""


def read_login_ways(answer: JsonObject) -> tuple[LoginWay, ...]:
    """Read the ``authMethods`` of an answer to ``initialize``; what is missing is empty."""
    return tuple(
        LoginWay(
            id=get_text(way, "id")[:_LONGEST],
            name=_line(get_text(way, "name") or get_text(way, "id")),
            kind=get_text(way, "type")[:40] or "agent",
            text=_line(get_text(way, "description")),
            arguments=tuple(_texts(way.get("args"))),
            environment=tuple(
                (name, value)
                for name, value in list(_pairs(way.get("env")))[:_MOST_WORDS]
                if _VARIABLE.fullmatch(name) and isinstance(value, str)
            ),
            variables=tuple(
                name
                for each in get_objects(way, "vars")[:_MOST_WORDS]
                if _VARIABLE.fullmatch(name := get_text(each, "name"))
            ),
        )
        for way in get_objects(answer, "authMethods")[:_MOST_WAYS]
    )


def describe_login(agent: Agent, way: LoginWay) -> str:
    """Say in one line what the user does to log in this way."""
    match way.kind:
        case "agent":
            how = f"`cockpit agents login {agent.name} {shlex.quote(way.id)}`"
        case "terminal":
            how = f"`{login_command(agent, way)}` in a terminal"
        case "env_var":
            names = " and ".join(way.variables) or "its variables"
            how = f"set {names} before you start cockpit"
            if missing := [each for each in way.variables if each not in agent.login.variables]:
                how += f", and name {' and '.join(missing)} in [login] variables of agents/{agent.name}.toml"
        case _:
            how = f"log in with {agent.title}'s own program"
    return " ".join(f"{way.name}: {how}".split())


def login_command(agent: Agent, way: LoginWay) -> str:
    """Return the command line of a login in a terminal: the agent's own program with what it adds."""
    variables = [f"{name}={shlex.quote(_line(value))}" for name, value in way.environment]
    words = [*agent.acp.command, *map(_line, way.arguments)]
    return " ".join([*variables, shlex.join(words)])


def _line(text: str) -> str:
    return mask(" ".join(text.split()))[:_LONGEST]


def _texts(value: Any) -> Sequence[str]:
    texts = value if isinstance(value, list) else []
    return [each for each in texts[:_MOST_WORDS] if isinstance(each, str)]


def _pairs(value: Any) -> Sequence[tuple[str, Any]]:
    """Return names and values: of an object, or of a list of objects as in other parts of the protocol."""
    if isinstance(value, Mapping):
        return [(name, each) for name, each in value.items() if isinstance(name, str)]
    entries = get_objects({"env": value}, "env")
    return [(get_text(each, "name"), get_object({"v": each}, "v").get("value")) for each in entries]

"""What cockpit knows of external agents: how they speak ACP, how to install them, what they need.

One file an agent: ``cockpit/data/agents/NAME.toml``, and the user's own in ``agents/NAME.toml`` of their
configuration folder, where a file of the same name replaces ours. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Struct

from cockpit.core.errors import CockpitError
from cockpit.core.read_record import convert

LARGEST_FILE = 64 * 1024
"""Bytes of one agent's file."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_MOST_FILES = 200

_READING = threading.Lock()
"""Agents that start at once are looked up in threads, and msgspec may crash where two of them make out the
fields of one record for the first time."""

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=4_000)]


class AgentInvalid(CockpitError):
    """An agent's file cannot be used, or no agent has that name; the message says why and what to do."""

    code = "config"


class AcpWays(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent speaks ACP, and its ways."""

    command: Annotated[tuple[Word, ...], msgspec.Meta(min_length=1, max_length=64)]
    """Its argv; it speaks ACP on its standard streams."""
    install: str = ""
    """The shell line of its own documentation that installs it; empty where none is certain."""
    tried: str = ""
    """The version that cockpit was tried with; empty: the file follows the agent's documentation."""
    mode: str = ""
    """The mode to set in a new session so that it asks before it acts; empty: its first mode asks."""
    rejection_ends_turn: bool = False
    """Whether a rejected permission ends its turn, so that the user's words become the next prompt."""
    environment: dict[str, str] = {}
    """Variables that it starts with."""
    variables: tuple[str, ...] = ()
    """Variables of the user's that it gets, beside those of its login and of the sandbox."""
    notes: str = ""
    """What the user should know of it."""


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to tell whether the user is logged in, without the network."""

    files: tuple[str, ...] = ()
    """Files that exist after a login; paths begin at the home directory."""
    variables: tuple[str, ...] = ()
    """Variables with keys of its provider. It gets those of them that are set."""
    how: str = ""
    """How the user logs in."""


NO_LOGIN = Login()


class KnownAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent needs in the sandbox. Paths begin at the home directory."""

    hosts: tuple[str, ...] = ()
    """Servers of its provider, by https."""
    addresses: tuple[str, ...] = ()
    """Variables that name another server."""
    variables: tuple[str, ...] = ()
    """Variables that are its own."""
    folder: tuple[str, str] = ("", "")
    """The variable that names its folder, and the folder in its place."""
    copies: tuple[str, ...] = ()
    """Its configuration: it gets a copy, and what it changes of it is gone with the run."""
    login: tuple[str, ...] = ()
    """What its login renews: it gets a copy, and a renewed one is brought back."""
    programs: tuple[str, ...] = ()
    """Where it is installed."""
    sessions: tuple[str, ...] = ()
    """Where it keeps its sessions, so that one can be loaded again."""


class AgentFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What an agent's file says."""

    title: Word
    acp: AcpWays
    programs: tuple[Word, ...] = ()
    """Names of its programs, by which a runner's command is recognised."""
    docs: str = ""
    """Where its documentation is."""
    login: Login = NO_LOGIN
    sandbox: KnownAgent | None = None
    """What it needs in the sandbox; None: cockpit does not know, and it runs with the user's rights."""


class Agent(AgentFile, frozen=True, kw_only=True):
    """One agent of the registry."""

    name: str
    source: str = "built-in"
    """``built-in``, or the user's file."""


class AgentRegistry(Struct, frozen=True):
    """The agents by name, and one sentence for each file that cannot be used."""

    agents: Mapping[str, Agent]
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> Agent:
        """Return the agent of that name, or the one that has a program of that name.

        Raises :class:`AgentInvalid`, whose message lists the names.
        """
        if name in self.agents:
            return self.agents[name]
        for agent in self.agents.values():
            if name in agent.programs:
                return agent
        unused = f" Files that are not used: {'; '.join(self.problems)}" if self.problems else ""
        raise AgentInvalid(
            f"There is no agent {name[:60]!r}; there are {', '.join(sorted(self.agents))}."
            f" Add one with `cockpit agents add`.{unused}"
        )


def load_agents(user_dir: Path | None = None) -> AgentRegistry:
    """Load the built-in agents and the user's own of ``user_dir/agents``.

    A file that cannot be used is a problem, and the built-in agent of its name stays.
    """
    agents, problems = dict(_built_in_agents()), list[str]()
    folder = None if user_dir is None else user_dir / "agents"
    files = sorted(folder.glob("*.toml"))[:_MOST_FILES] if folder and folder.is_dir() else []
    for file in files:
        try:
            if file.stat().st_size > LARGEST_FILE:
                raise AgentInvalid(f"{file}: the file is larger than {LARGEST_FILE:,} bytes")
            agents[file.stem] = read_agent(file.stem, file.read_bytes(), str(file))
        except AgentInvalid as error:
            problems.append(_one_line(str(error)))
        except OSError as error:
            problems.append(_one_line(f"{file}: {error.strerror}"))
    return AgentRegistry(MappingProxyType(agents), tuple(problems))


def read_agent(name: str, data: bytes, source: str) -> Agent:
    """Read one agent's file strictly. Raises :class:`AgentInvalid`, which names ``source`` and the field."""
    import tomllib

    try:
        with _READING:
            record = convert(tomllib.loads(data.decode("utf-8")), AgentFile)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise AgentInvalid(f"{source}: not TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise AgentInvalid(f"{source}: {error}") from error
    if _NAME.fullmatch(name) is None:
        raise AgentInvalid(
            f"{source}: an agent's name is lower-case letters, digits, - and _, and begins with a letter"
        )
    _check(record, source)
    fields = {**msgspec.structs.asdict(record), "title": _one_line(record.title)}
    return Agent(name=name, source=source, **fields)


def _one_line(text: str) -> str:
    """Return the text of a file, or its name, as one line: it stands in lines of ours."""
    return " ".join(text.split())


def _check(record: AgentFile, source: str) -> None:
    program = record.acp.command[0]
    if "/" in program and not program.startswith("/"):
        raise AgentInvalid(
            f"{source}: acp.command begins with {program!r}, which would run a program of the project;"
            " name a program on the PATH, or by its absolute path"
        )
    values = (*record.acp.command, *record.acp.environment.values())
    if any("\0" in value for value in values):
        raise AgentInvalid(f"{source}: acp.command and acp.environment cannot have a NUL character")
    needs = record.sandbox or KnownAgent()
    variables = (*record.acp.environment, *record.acp.variables)
    variables += (*record.login.variables, *needs.variables)
    for variable in variables:
        if _VARIABLE.fullmatch(variable) is None or variable.startswith("COCKPIT_"):
            raise AgentInvalid(f"{source}: {variable!r} is not the name of a variable of an agent")
    inside = (*needs.copies, *needs.login, *needs.programs, *needs.sessions, *record.login.files)
    for place in inside:
        if place[:1] in ("", "/", "~") or ".." in place.split("/"):
            raise AgentInvalid(
                f"{source}: {place!r} is not below the home directory; list paths that begin there"
            )


@cache
def _built_in_agents() -> Mapping[str, Agent]:
    folder = resources.files("cockpit").joinpath("data/agents")
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {
        name: read_agent(name, file.read_bytes(), "built-in")
        for file in files
        if (name := file.name.removesuffix(".toml")) != file.name
    }


@cache
def known_agents() -> Mapping[str, KnownAgent]:
    """Return what the built-in agents need in the sandbox, by the name of each of their programs."""
    return {
        program: agent.sandbox
        for agent in _built_in_agents().values()
        if agent.sandbox is not None
        for program in agent.programs
    }


def recognise_agent(command: Sequence[str]) -> KnownAgent | None:
    """Return what is known of the program that ``command`` starts; None for another one."""
    return known_agents().get(PurePath(command[0]).name) if command else None

"""What is known of external agents: where their login is, what else they read, whom they talk to.

The list is ``cockpit/data/agents.toml``. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import PurePath

import msgspec


class KnownAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One agent. Paths begin at the home directory."""

    hosts: tuple[str, ...]
    addresses: tuple[str, ...]
    variables: tuple[str, ...]
    folder: tuple[str, str]
    copies: tuple[str, ...]
    login: tuple[str, ...]
    programs: tuple[str, ...]


@cache
def known_agents() -> Mapping[str, KnownAgent]:
    """Return the known agents by the name of their program."""
    data = resources.files("cockpit").joinpath("data/agents.toml").read_bytes()
    import tomllib

    return msgspec.convert(tomllib.loads(data.decode()), dict[str, KnownAgent])


def recognise_agent(command: Sequence[str]) -> KnownAgent | None:
    """Return what is known of the program that ``command`` starts; None for another one."""
    return known_agents().get(PurePath(command[0]).name) if command else None

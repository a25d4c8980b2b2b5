"""Read ``[sandbox]``: what the user allows programs in the sandbox, and what these may use up.

Only the user's own configuration may have it. See ``docs/reference/configuration.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from cockpit.act.sandbox.sandbox_settings import SandboxChoices, default_limits
from cockpit.config.setting import OutOfBounds
from cockpit.core.read_record import convert

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_MEGABYTE = 1024**2
_Megabytes = Annotated[int, msgspec.Meta(ge=64, le=16 * 1024 * 1024)]


class _SandboxTable(msgspec.Struct, forbid_unknown_fields=True):
    env: list[str] = []
    read: list[str] = []
    agents: bool = True
    processes: Annotated[int, msgspec.Meta(ge=16, le=1_000_000)] | None = None
    memory_mb: _Megabytes | None = None
    process_mb: _Megabytes | None = None
    written_mb: _Megabytes | None = None
    temporary_mb: _Megabytes | None = None


def read_sandbox(body: Mapping[str, Any]) -> SandboxChoices:
    """Read the table. Raises :class:`OutOfBounds`, whose message says what is allowed."""
    try:
        table = convert(body, _SandboxTable)
    except msgspec.ValidationError as error:
        raise OutOfBounds(f"[sandbox]: {error}") from error
    if invalid := [name for name in table.env if _VARIABLE.fullmatch(name) is None]:
        raise OutOfBounds(
            f"[sandbox] env has {invalid[0]!r}; list names of variables, without values"
        )
    places = [Path(place).expanduser() for place in table.read]
    if wrong := [str(place) for place in places if not place.is_absolute() or place == Path("/")]:
        raise OutOfBounds(f"[sandbox] read has {wrong[0]!r}; list absolute paths, or paths in ~")
    limits = default_limits()
    sizes = {
        "memory_bytes": table.memory_mb,
        "process_bytes": table.process_mb,
        "written_bytes": table.written_mb,
        "temporary_bytes": table.temporary_mb,
    }
    changed = {name: size * _MEGABYTE for name, size in sizes.items() if size is not None}
    if table.processes is not None:
        changed["processes"] = table.processes
    return SandboxChoices(tuple(table.env), tuple(places), replace(limits, **changed), table.agents)

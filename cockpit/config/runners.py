"""Read ``[runner.NAME]``: external agents that run roles of tasks.

Only the user's own configuration may name them, because cockpit runs the named program. Specified in
``docs/reference/agents.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from cockpit.agents.runs.agent_command_line import PLACEHOLDERS
from cockpit.agents.stdio.driven_runners import driven_command
from cockpit.config.all_settings import OutOfBounds
from cockpit.core.read_record import convert
from cockpit.loop.runtime_settings import EMBEDDED, RunnerSettings

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}", re.ASCII)

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:]+\]:[0-9]{1,5}", re.ASCII)


class _RunnerTable(msgspec.Struct, forbid_unknown_fields=True):
    command: Annotated[list[Annotated[str, msgspec.Meta(min_length=1)]], msgspec.Meta(min_length=1)]
    format: Literal["auto", "claude", "text"] = "auto"
    env: list[str] = []
    timeout_s: Annotated[float, msgspec.Meta(ge=1, le=7 * 86_400)] = 3600.0
    max_output_mb: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 64
    sandbox: bool | None = None
    hosts: list[str] = []
    home: list[str] = []
    protocol: Literal["", "stdio"] = ""


def read_runners(body: Mapping[str, Any]) -> dict[str, RunnerSettings]:
    """Read the runners of a table ``[runner]``, by name.

    Raises :class:`OutOfBounds`, whose message names the runner and what is allowed.
    """
    return {name: _read_runner(name, table) for name, table in body.items()}


def _read_runner(name: str, table: object) -> RunnerSettings:
    where = f"[runner.{name[:40]}]"
    if _NAME.fullmatch(name) is None or name == EMBEDDED:
        raise OutOfBounds(
            f"{where}: the name of a runner is lower-case letters, digits, - and _, and not {EMBEDDED!r}"
        )
    try:
        runner = convert(table, _RunnerTable)
    except msgspec.ValidationError as error:
        raise OutOfBounds(f"{where}: {error}") from error
    program = runner.command[0]
    if "/" in program and not program.startswith("/"):
        raise OutOfBounds(
            f"{where} command begins with {program!r}, which would run a program of the task's worktree;"
            " name a program on the PATH, or by its absolute path"
        )
    for argument in runner.command:
        placeholder = _PLACEHOLDER.fullmatch(argument)
        if "\0" in argument or (placeholder and placeholder[1] not in PLACEHOLDERS):
            raise OutOfBounds(
                f"{where} command has {argument!r}; the placeholders are "
                + ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            )
    if "{" in program:
        raise OutOfBounds(f"{where} command begins with a placeholder; begin it with a program")
    if invalid := [variable for variable in runner.env if _VARIABLE.fullmatch(variable) is None]:
        raise OutOfBounds(
            f"{where} env has {invalid[0]!r}; list names of variables, without values"
        )
    for place in runner.home:
        if place[:1] in ("", "/", "~") or ".." in place.split("/"):
            raise OutOfBounds(
                f"{where} home has {place!r}; list paths that begin at your home directory"
            )
    for host in runner.hosts:
        if _HOST.fullmatch(host) is None:
            raise OutOfBounds(f"{where} hosts has {host!r}; list servers as NAME or NAME:PORT")
    command = tuple(runner.command)
    if runner.protocol:
        if placeholder := next(filter(None, map(_PLACEHOLDER.search, command)), None):
            raise OutOfBounds(
                f"{where} command has {placeholder[0]!r}; with a protocol cockpit adds the prompt and its"
                " arguments itself"
            )
        if runner.format != "auto":
            raise OutOfBounds(f"{where} has format and protocol; leave out format")
        command = driven_command(command)
    return RunnerSettings(
        name,
        command,
        runner.format,
        tuple(runner.env),
        float(runner.timeout_s),
        runner.max_output_mb,
        runner.sandbox,
        tuple(runner.hosts),
        tuple(runner.home),
        runner.protocol,
    )

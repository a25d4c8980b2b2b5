"""``[runner.NAME]``: agents of somebody else's, named in the person's own configuration alone.

A repository that could name a program would run it. Source: design of work, "The runner of a session is
configurable"; decision 6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from cockpit.agents.agent_command import PLACEHOLDERS
from cockpit.config.all_settings import OutOfBounds
from cockpit.loop.runtime_settings import RunnerSettings
from cockpit.tasks.task_context import EMBEDDED

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_LONE = re.compile(r"\{([a-z_]+)\}", re.ASCII)


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    command: Annotated[list[Annotated[str, msgspec.Meta(min_length=1)]], msgspec.Meta(min_length=1)]
    format: Literal["auto", "claude", "codex", "text"] = "auto"
    env: list[str] = []
    timeout_s: Annotated[float, msgspec.Meta(ge=1, le=7 * 86_400)] = 3600.0
    max_output_mb: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 64


def read_runners(body: Mapping[str, Any]) -> dict[str, RunnerSettings]:
    """The runners of a table ``[runner]``, by name. Raises :class:`OutOfBounds`, which names the runner
    and what is allowed."""
    return {name: _runner(name, written) for name, written in body.items()}


def _runner(name: str, written: object) -> RunnerSettings:
    where = f"[runner.{name[:40]}]"
    if _NAME.fullmatch(name) is None or name == EMBEDDED:
        raise OutOfBounds(
            f"{where}: a runner's name is small letters, digits, - and _, and not {EMBEDDED!r}"
        )
    try:
        read = msgspec.convert(written, _Written)
    except msgspec.ValidationError as error:
        raise OutOfBounds(f"{where}: {error}") from error
    program = read.command[0]
    if "/" in program and not program.startswith("/"):
        raise OutOfBounds(
            f"{where} command begins with {program!r}: name a program on the PATH or by its whole path,"
            " or the one that stands there in a task's tree would run"
        )
    for word in read.command:
        lone = _LONE.fullmatch(word)
        if "\0" in word or (lone and lone[1] not in PLACEHOLDERS):
            raise OutOfBounds(
                f"{where} command has {word!r}; the placeholders are "
                + ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
            )
    if "{" in program:
        raise OutOfBounds(f"{where} command begins with a placeholder; it begins with a program")
    if odd := [variable for variable in read.env if _VARIABLE.fullmatch(variable) is None]:
        raise OutOfBounds(f"{where} env has {odd[0]!r}: it holds names of variables, no values")
    return RunnerSettings(
        name,
        tuple(read.command),
        read.format,
        tuple(read.env),
        float(read.timeout_s),
        read.max_output_mb,
    )

"""What the tools of an approved file are: the child process imports it in the sandbox, and describes them.

See ``docs/reference/tools.md``, approval.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError

from cockpit.act.own_tools.find_tools import NAME, find_tools
from cockpit.act.own_tools.run_child import DESCRIBE_TIMEOUT_S, run_child
from cockpit.act.own_tools.tool_definition import (
    SchemaRefused,
    ToolDefinition,
    clean_schema,
    clean_text,
)
from cockpit.act.own_tools.tool_files import ToolFile, ToolFileRefused
from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.core.read_record import convert

MAX_TIMEOUT_S = 600
MAX_TOOLS = 32
"""The most tools of one file."""


class _Described(Struct, frozen=True):
    """A tool as the child describes it."""

    function: str
    name: str
    description: str
    aliases: tuple[str, ...]
    effects: Literal["reads", "writes"]
    timeout_s: Annotated[int, Meta(ge=1, le=MAX_TIMEOUT_S)]
    schema: Any


async def describe_file(
    file: ToolFile, sandbox: Sandbox, root: Path, environment: Mapping[str, str]
) -> tuple[ToolDefinition, ...]:
    """Load ``file`` in the sandbox, without the right to write, and return its tools.

    Raises :class:`ToolFileRefused` for a file that cannot be loaded or used, and ``NoSandbox``.
    """
    if not find_tools(file):
        raise ToolFileRefused(f"{file.label} declares no tool. Mark a function with @tool.")
    answer = await run_child(
        file,
        {"mode": "describe"},
        sandbox,
        root,
        environment,
        timeout_s=DESCRIBE_TIMEOUT_S,
        writes=False,
    )
    if answer.error:
        raise ToolFileRefused(f"{file.label} is not used. {clean_text(answer.error)}")
    return read_description(file, answer.result)


def read_description(file: ToolFile, described: object) -> tuple[ToolDefinition, ...]:
    """Return the tools that the child described. Raises :class:`ToolFileRefused`.

    The file was listed by the names in its source, so those that it has when it is loaded are the same.
    """
    try:
        tools = convert(described, tuple[_Described, ...])
    except ValidationError as error:
        raise _refuse(file, f"a tool in it is not described as one: {error}") from error
    shown = {(each.name, each.function) for each in find_tools(file)}
    if {(each.name, each.function) for each in tools} != shown:
        listed = ", ".join(sorted(each.name for each in tools)) or "nothing"
        raise _refuse(file, f"when it is loaded it has other tools than its source: {listed[:200]}")
    if len(tools) > MAX_TOOLS:
        raise _refuse(file, f"it declares more than {MAX_TOOLS} tools")
    names = [name for tool in tools for name in (tool.name, *tool.aliases)]
    for name in names:
        if NAME.fullmatch(name) is None:
            raise _refuse(
                file,
                f"{name[:60]!r} is not a name of a tool: 2 to 48 lower-case letters, digits and _",
            )
        if names.count(name) > 1:
            raise _refuse(file, f"the name {name!r} is given to two tools")
    return tuple(_define(file, tool) for tool in tools)


def _define(file: ToolFile, tool: _Described) -> ToolDefinition:
    description = clean_text(tool.description)
    if not description:
        raise _refuse(file, f"{tool.name} has no docstring; an agent needs one sentence about it")
    try:
        schema = clean_schema(tool.schema)
    except SchemaRefused as error:
        raise _refuse(file, f"the schema of {tool.name} is refused: {error}") from error
    return ToolDefinition(
        tool_id=f"{file.folder.place}:{tool.name}",
        name=tool.name,
        kind="own",
        place=file.folder.place,
        description=description,
        parameters=schema,
        digest=file.digest,
        aliases=tool.aliases,
        effects=tool.effects,
        timeout_s=tool.timeout_s,
        file=file.name,
        function=tool.function,
    )


def _refuse(file: ToolFile, problem: str) -> ToolFileRefused:
    return ToolFileRefused(f"{file.label} is not used: {clean_text(problem, 600)}.")

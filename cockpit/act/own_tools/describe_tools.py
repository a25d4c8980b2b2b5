"""What a tool's file is when it is loaded, compared with what its source says.

The child imports the file in the sandbox and describes its tools; a file that describes itself in another way
than its source reads is not used. See ``docs/reference/tools.md``, approval.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cockpit.act.own_tools.find_tools import DeclaredTool, Parameter, find_tools
from cockpit.act.own_tools.run_child import DESCRIBE_TIMEOUT_S, run_child
from cockpit.act.own_tools.tool_definition import (
    SchemaRefused,
    ToolDefinition,
    clean_schema,
    clean_text,
)
from cockpit.act.own_tools.tool_files import ToolFile, ToolFileRefused
from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.core.secrets import mask

_PLAIN = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_CONTAINER = re.compile(r"^(list|tuple|set|frozenset|dict|List|Dict|Sequence|Mapping)\b")


async def describe_file(
    file: ToolFile, sandbox: Sandbox, root: Path, environment: Mapping[str, str]
) -> tuple[ToolDefinition, ...]:
    """Load ``file`` in the sandbox, without the right to write, and return its tools.

    Raises :class:`ToolFileRefused` for a file that cannot be loaded or is not what its source says, and
    ``NoSandbox``.
    """
    declared = find_tools(file)
    if not declared:
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
    return compare_description(file, declared, answer.result)


def compare_description(
    file: ToolFile, declared: Sequence[DeclaredTool], described: object
) -> tuple[ToolDefinition, ...]:
    """Return the definitions of the ``declared`` tools with the schemas that the child ``described``.

    Raises :class:`ToolFileRefused` where the two differ.
    """
    entries = (
        [each for each in described if isinstance(each, Mapping)]
        if isinstance(described, list)
        else []
    )
    by_function = {str(each.get("function")): each for each in entries}
    expected = {tool.function for tool in declared}
    if len(entries) != len(by_function) or set(by_function) != expected:
        other = ", ".join(sorted(set(by_function) ^ expected)) or "the same function twice"
        raise _refuse(
            file, f"its source and the loaded module differ in their tools: {other[:200]}"
        )
    return tuple(_define(file, tool, by_function[tool.function]) for tool in declared)


def _define(file: ToolFile, tool: DeclaredTool, entry: Mapping[str, Any]) -> ToolDefinition:
    aliases = entry.get("aliases")
    for name, shown, loaded in (
        ("name", tool.name, entry.get("name")),
        ("aliases", list(tool.aliases), aliases),
        ("effects", tool.effects, entry.get("effects")),
        ("timeout_s", tool.timeout_s, entry.get("timeout_s")),
        ("parameters", [each.name for each in tool.parameters], entry.get("parameters")),
    ):
        if shown != loaded:
            raise _refuse(
                file,
                f"{tool.name} has {name} {str(loaded)[:100]!r} when it is loaded, and its source says"
                f" {str(shown)[:100]!r}",
            )
    try:
        schema = clean_schema(entry.get("schema"))
    except SchemaRefused as error:
        raise _refuse(file, f"the schema of {tool.name} is refused: {error}") from error
    properties = schema["properties"]
    if list(properties) != [each.name for each in tool.parameters]:
        raise _refuse(file, f"the schema of {tool.name} has other arguments than its source")
    if set(schema["required"]) != {each.name for each in tool.parameters if each.required}:
        raise _refuse(file, f"the schema of {tool.name} requires other arguments than its source")
    for parameter in tool.parameters:
        part = properties[parameter.name]
        if problem := _find_type_difference(parameter, part):
            raise _refuse(file, f"{tool.name}: {parameter.name} is declared {problem}")
        if parameter.description and "description" not in part:
            part["description"] = clean_text(parameter.description)
    return ToolDefinition(
        tool_id=f"{file.folder.place}:{tool.name}",
        name=tool.name,
        kind="own",
        place=file.folder.place,
        description=mask(tool.description),
        parameters=schema,
        digest=file.digest,
        aliases=tool.aliases,
        effects=tool.effects,
        timeout_s=tool.timeout_s,
        file=file.name,
        function=tool.function,
    )


def _find_type_difference(parameter: Parameter, part: Any) -> str:
    """Return how a plain type hint and the schema differ; empty where they agree or the hint is not plain."""
    if not isinstance(part, dict):
        return f"{parameter.annotation}, and its schema takes anything"
    kind = part.get("type")
    expected = _PLAIN.get(parameter.annotation)
    if expected is None and (match := _CONTAINER.match(parameter.annotation)):
        expected = "object" if match[1] in ("dict", "Dict", "Mapping") else "array"
        if "|" in parameter.annotation:
            return ""
    if expected is not None and kind != expected:
        return f"{parameter.annotation}, and its schema says {kind!r}"
    return ""


def _refuse(file: ToolFile, problem: str) -> ToolFileRefused:
    return ToolFileRefused(f"{file.label} is not used: {clean_text(problem, 600)}.")

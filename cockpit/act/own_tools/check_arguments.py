"""Check the arguments of a call against the tool's schema, with errors that an agent can act on.

Names, what is required and plain types are checked here; the tool itself checks the rest. Patterns of a
foreign schema are never run. See ``docs/reference/tools.md``.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from cockpit.act.model_tools import MAX_ARGUMENTS, Call, MalformedCall
from cockpit.act.own_tools.tool_definition import ToolDefinition
from cockpit.act.tool_payloads import AddedCall
from cockpit.core.read_record import InvalidRecord, parse_object

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


def parse_added_call(definition: ToolDefinition, arguments_json: str) -> Call:
    """Read a call's arguments. Raises :class:`MalformedCall` with a message for the model."""
    name = definition.name
    try:
        arguments = parse_object(arguments_json or "{}", name=name, max_characters=MAX_ARGUMENTS)
    except InvalidRecord as error:
        raise MalformedCall(str(error)) from error
    if problem := find_argument_problem(definition, arguments):
        raise MalformedCall(problem)
    return Call(name, arguments, AddedCall(definition, arguments))


def find_argument_problem(definition: ToolDefinition, arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments, for the agent; empty where nothing is."""
    schema = definition.parameters
    properties: Mapping[str, Any] = schema.get("properties", {})
    takes = f"It takes: {describe_parameters(schema)}."
    is_open = bool(schema.get("additionalProperties", not properties))
    unknown = [name for name in arguments if name not in properties] if not is_open else []
    if unknown:
        near = difflib.get_close_matches(unknown[0], list(properties), 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        names = ", ".join(repr(str(name)[:60]) for name in unknown[:8])
        return f"{definition.name} has no argument {names}.{hint} {takes}"
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        return f"{definition.name} needs {', '.join(map(repr, missing))}. {takes}"
    for name, value in arguments.items():
        problem = _find_type_problem(_follow(properties.get(name, {}), schema), value)
        if problem:
            return f"{definition.name}: {name} must be {problem}. {takes}"
    return ""


def describe_parameters(schema: Mapping[str, Any]) -> str:
    """Return the parameters of a schema in one line, those that are required first."""
    required = schema.get("required", ())
    shown = [
        f"{name} ({describe_type(part, schema)}{'' if name in required else ', optional'})"
        for name, part in sorted(
            schema.get("properties", {}).items(), key=lambda each: each[0] not in required
        )
    ]
    return ", ".join(shown) or "nothing"


def describe_type(part: Any, schema: Mapping[str, Any] | None = None) -> str:
    """Return the type that a part of a ``schema`` allows, in words."""
    part = _follow(part, schema or {})
    if not isinstance(part, Mapping):
        return "anything"
    if "enum" in part:
        return "one of " + ", ".join(repr(each)[:40] for each in part["enum"][:8])
    options = part.get("anyOf") or part.get("oneOf")
    if isinstance(options, list):
        return " or ".join(dict.fromkeys(describe_type(each, schema) for each in options[:4]))
    kind = part.get("type", "anything")
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _follow(part: Any, schema: Mapping[str, Any]) -> Any:
    """Return what a part of a schema refers to, one step: an enumeration or a model."""
    if not isinstance(part, Mapping) or not isinstance(part.get("$ref"), str):
        return part
    _, group, name = (*part["$ref"].split("/", 2), "", "")[:3]
    definitions = schema.get(group)
    return definitions.get(name, part) if isinstance(definitions, Mapping) else part


def _find_type_problem(part: Any, value: object) -> str:
    """Return what the value must be, where it plainly is not."""
    if not isinstance(part, Mapping):
        return ""
    if isinstance(part.get("enum"), list) and value not in part["enum"]:
        return describe_type(part)
    kind = part.get("type")
    kinds = [str(each) for each in (kind if isinstance(kind, list) else [kind])]
    if not set(kinds) <= set(_TYPES):
        return ""
    for each in kinds:
        is_bool = isinstance(value, bool)
        if isinstance(value, _TYPES[each]) and (each == "boolean") >= is_bool:
            return ""
    return f"of type {describe_type(part)}"

"""A tool's parameters as a JSON Schema that costs few tokens, and its arguments read by the same record.

The schema says names, types and what is needed; a description stands only where a name does not say it.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from cockpit.core.errors import CockpitError

T = TypeVar("T")

_MOST = 2**53
"""Beyond it a number is not the same in every language, and none of ours is that large."""
_PLAIN: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


class WrongArguments(CockpitError):
    """Arguments that a tool does not take; the message names those that it does."""

    code = "usage"


def schema_of(record: type[Any]) -> dict[str, Any]:
    """The JSON Schema of a dataclass: no titles, no defaults, what is optional left out of
    ``required``. A field's metadata may hold a ``description``."""
    hints = get_type_hints(record)
    properties = {}
    for field in dataclasses.fields(record):
        kind = _kind(hints[field.name])
        words = field.metadata.get("description")
        properties[field.name] = {**kind, "description": words} if words else kind
    needed = _needed(record)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": needed} if needed else schema


def read_arguments(tool: str, record: type[T], arguments: Mapping[str, Any] | None) -> T:
    """The arguments as the record. Raises :class:`WrongArguments`."""
    given = dict(arguments or {})
    names = [field.name for field in dataclasses.fields(record)]  # type: ignore[arg-type]  # a dataclass
    takes = f"It takes: {', '.join(names)}." if names else "It takes no arguments."
    unknown = [name for name in given if name not in names]
    if unknown:
        raise WrongArguments(f"{tool} has no argument {', '.join(map(repr, unknown))}. {takes}")
    missing = [name for name in _needed(record) if name not in given]
    if missing:
        raise WrongArguments(f"{tool} needs {', '.join(map(repr, missing))}. {takes}")
    huge = [name for name in names if type(given.get(name)) is int and abs(given[name]) > _MOST]
    if huge:
        raise WrongArguments(f"{tool}: {huge[0]} is beyond any number that can be meant. {takes}")
    try:
        return msgspec.convert(given, record, strict=True)
    except msgspec.ValidationError as error:
        raise WrongArguments(f"{tool}: {error}. {takes}") from error


def _needed(record: type[Any]) -> list[str]:
    return [
        field.name
        for field in dataclasses.fields(record)
        if field.default is field.default_factory is dataclasses.MISSING
    ]


def _kind(hint: Any) -> dict[str, Any]:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _kind(next(arm for arm in get_args(hint) if arm is not type(None)))
    if origin is Literal:
        # Some clients take no enum without a type; ours are all words.
        return {"type": "string", "enum": list(get_args(hint))}
    if origin in (list, tuple):
        return {"type": "array", "items": _kind(get_args(hint)[0])}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    return {"type": "object"}

"""The reference of journal events as Markdown: every event type, the fields of its detail, and their meaning.

Run ``python -m cockpit.store.journal.describe_events`` to print it.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import fields

from cockpit.store.journal.details.detail import Part
from cockpit.store.journal.details.table import DETAILS

COMMON_FIELDS: Mapping[str, str] = {
    "base_version": "The profile version that it starts from.",
    "chain_id": "The chain's id, for example ``ch-3``.",
    "epic_id": "The epic's id, for example ``E-1``.",
    "message_id": "The message's id.",
    "ordinal": "The wave's number in its session, from 1.",
    "packet_id": "The packet's id.",
    "profile_id": "The profile's id.",
    "proposal_id": "The proposal's id.",
    "request_id": "The context request's id.",
    "story_id": "The story's id, for example ``S-1``.",
    "task_id": "The task's id, for example ``T-42``.",
}
"""Fields that mean the same in every detail, so that records do not describe them again."""


class FieldDescription(Struct, frozen=True):
    """One key of a detail's JSON."""

    name: str
    """The key."""
    kind: str
    """The JSON type, for people to read."""
    optional: bool
    """Whether the key may be missing."""
    text: str
    """What it means; empty where the record does not describe it."""
    parts: type[Part] | None
    """The record of the objects in it, if any."""


class EventDescription(Struct, frozen=True):
    """One event type."""

    action: str
    """The event type, as it is stored."""
    text: str
    """When the event is written."""
    fields: tuple[FieldDescription, ...]
    """The keys of its detail."""


def describe_events() -> tuple[EventDescription, ...]:
    """Return the descriptions of all event types, in the order of the registry."""
    return tuple(
        EventDescription(str(action), _docstring(kind), describe_fields(kind))
        for action, kind in DETAILS.items()
    )


def describe_fields(kind: type[Part]) -> tuple[FieldDescription, ...]:
    """Return the descriptions of a record's fields, in the order of their declaration."""
    hints, texts = get_type_hints(kind), _field_docstrings(kind)
    return tuple(
        FieldDescription(
            name=field.encode_name,
            kind=_json_type(hints[field.name]),
            optional=field.default is UNSET,
            text=texts.get(field.name) or COMMON_FIELDS.get(field.encode_name, ""),
            parts=_part_in(hints[field.name]),
        )
        for field in fields(kind)
    )


def events_markdown() -> str:
    """Return the reference: a section for each event type, with a table of its fields."""
    lines: list[str] = []
    for event in describe_events():
        lines += [f"### `{event.action}`", "", _markdown(event.text), ""]
        if event.fields:
            lines += ["| field | type | meaning |", "| --- | --- | --- |", *_rows(event.fields), ""]
    return "\n".join(lines)


def _rows(described: tuple[FieldDescription, ...], prefix: str = "") -> Iterator[str]:
    for field in described:
        name = f"{prefix}{field.name}"
        optional = ", may be missing" if field.optional else ""
        yield f"| `{name}` | {field.kind}{optional} | {_markdown(field.text)} |"
        if field.parts is not None:
            many = "[]" if field.kind.startswith("list") else ""
            yield from _rows(describe_fields(field.parts), f"{name}{many}.")


def _markdown(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def _docstring(kind: type[Part]) -> str:
    return inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]


def _field_docstrings(kind: type[Part]) -> dict[str, str]:
    """Return the strings that follow the fields of a class and of its bases in the source."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        texts |= _docstrings_in(base.__module__).get(base.__name__, {})
    return texts


@cache
def _docstrings_in(module: str) -> dict[str, dict[str, str]]:
    """Return the strings after the fields of each class of a module."""
    if not module.startswith(__package__):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        node.name: {
            field.target.id: " ".join(str(after.value.value).split())
            for field, after in pairwise(node.body)
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        }
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


def _part_in(hint: Any) -> type[Part] | None:
    """Return the record in a type, also in a list or a union."""
    if isinstance(hint, type) and issubclass(hint, Part):
        return hint
    return next((part for each in get_args(hint) if (part := _part_in(each))), None)


def _json_type(hint: Any) -> str:
    """Name a field's type as a reader of JSON knows it."""
    names = {str: "string", int: "number", float: "number", bool: "true or false"}
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in names:
        return names[hint]
    if origin is tuple and arguments[-1] is not Ellipsis:
        return f"pair of {_json_type(arguments[0])}s"
    if origin is tuple:
        return f"list of {_json_type(arguments[0])}s"
    if origin is None or origin in (dict, Mapping):
        return "object"
    kinds = [each for each in arguments if each not in (type(None), UnsetType)]
    null = " or null" if type(None) in arguments else ""
    return " or ".join(dict.fromkeys(_json_type(each) for each in kinds)) + null


if __name__ == "__main__":
    print(events_markdown())  # noqa: T201 - a generator prints

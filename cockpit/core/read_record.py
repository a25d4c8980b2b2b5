"""Read JSON strictly into frozen records, and write the JSON Schema of a record.

A record is a :class:`msgspec.Struct` whose type hints say everything: ``Annotated`` with
:class:`msgspec.Meta` for descriptions and limits, ``X | UnsetType = UNSET`` for a field that may be absent
but not null. Tool calls, profile changes, MCP arguments and HTTP bodies are all read here, so that each of
them refuses the same faults: text that is not JSON, duplicate keys, NaN and infinities, unknown and missing
fields, wrong types and numbers out of range.
"""

from __future__ import annotations

import json
import math
import threading
import types
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from cockpit.core.errors import CockpitError

T = TypeVar("T")

MAX_INTEGER = 2**53
"""The largest integer that is the same number in every JSON reader."""

_MAX_DIGITS = 40
_QUOTED = 200
_PLAIN: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_TEXT_ONLY = {str}
_CONSTRAINTS = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "tz")
_LIMITS = {
    "ge": "minimum",
    "le": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
}


class InvalidRecord(CockpitError):
    """JSON that is not the record asked for; nothing was read.

    ``path`` names the field, for example ``rules[0].enabled``, or is empty for the whole text.
    ``unknown`` lists the fields that the record does not have, if those are the fault.
    """

    code = "malformed"

    def __init__(self, message: str, *, path: str = "", unknown: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.path = path
        self.unknown = unknown


def parse_object(text: str | bytes, *, name: str, max_characters: int) -> dict[str, Any]:
    """Parse the text of one JSON object. ``name`` is what error messages call the text.

    Refuses duplicate keys, NaN, infinities, integers of more than 40 digits and text that UTF-8 cannot
    encode. Raises :class:`InvalidRecord`.
    """
    if len(text) > max_characters:
        raise InvalidRecord(f"{name}: the JSON is longer than {max_characters:,} characters.")
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(
            text,
            object_pairs_hook=_refuse_duplicates,
            parse_constant=_refuse_constant,
            parse_float=_parse_finite,
            parse_int=_parse_integer,
        )
    except json.JSONDecodeError as error:
        raise InvalidRecord(
            f"{name}: not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from error
    except RecursionError as error:
        raise InvalidRecord(f"{name}: the JSON is nested too deeply.") from error
    except ValueError as error:
        raise InvalidRecord(f"{name}: not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise InvalidRecord(f"{name} must be a JSON object with named fields.")
    if not text.isascii() or "\\u" in text:
        _refuse_surrogates(value, name)
    return value


def read_record(record: type[T], value: Any, *, name: str) -> T:
    """Read an already parsed JSON value into the record type ``record``, nested records included.

    ``name`` is what error messages call the value. Raises :class:`InvalidRecord`.
    """
    return _read_fields(record, value, name, "")


def record_schema(record: type[Any], *, closed: bool = False) -> dict[str, Any]:
    """Build a JSON Schema of the record type ``record`` that costs few tokens.

    It gives names, types, limits and descriptions, without titles and defaults. ``closed`` adds
    ``additionalProperties: false``. Fields marked :data:`HIDDEN` are read but not shown.
    """
    fields = [field for field in _fields(record) if not field.hidden]  # type: ignore[arg-type]  # mypy: a class is hashable
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: _hint_schema(field.hint, closed) for field in fields},
    }
    required = [field.name for field in fields if field.required]
    if required:
        schema["required"] = required
    if closed:
        schema["additionalProperties"] = False
    return schema


def describe(description: str, **keywords: Any) -> msgspec.Meta:
    """Annotate a field with its description for readers of the schema.

    ``keywords`` are JSON Schema keywords that tell the caller about limits which other code enforces.
    """
    return msgspec.Meta(description=description, extra_json_schema=keywords or None)


HIDDEN = msgspec.Meta(extra={"hidden": True})
"""Marks a field that is read but does not appear in the schema."""


class _Field(msgspec.Struct, frozen=True):
    name: str
    hint: Any
    required: bool
    hidden: bool
    is_text: bool
    """Whether any text fits."""
    is_texts: bool
    """Whether any list of texts fits."""


@cache
def _fields(record: type[Any]) -> tuple[_Field, ...]:
    hints = get_type_hints(record, include_extras=True)
    return tuple(
        _Field(
            field.name,
            hints[field.name],
            field.required,
            HIDDEN in getattr(hints[field.name], "__metadata__", ()),
            is_text=_takes_any(hints[field.name], str),
            is_texts=_takes_any(hints[field.name], tuple[str, ...]),
        )
        for field in msgspec.structs.fields(record)
    )


def _takes_any(hint: Any, kind: Any) -> bool:
    """Whether a hint is ``kind``, or with None or nothing beside it, without a limit."""
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    arms = get_args(plain) if get_origin(plain) in (Union, types.UnionType) else (plain,)
    absent = (kind, type(None), msgspec.UnsetType)
    return (
        kind in arms
        and all(arm in absent for arm in arms)
        and not any(
            getattr(meta, limit) is not None for meta in _metas(hint) for limit in _CONSTRAINTS
        )
    )


def _read_fields(record: type[T], value: Any, name: str, path: str) -> T:
    place = f"{name}: {path}" if path else name
    if not isinstance(value, Mapping):
        raise InvalidRecord(f"{place} must be an object with named fields.", path=path)
    fields = _fields(record)  # type: ignore[arg-type]  # mypy: a class is hashable
    names = [field.name for field in fields]
    takes = f"It takes: {', '.join(names)}." if names else "It takes no fields."
    unknown = tuple([key for key in value if key not in names])
    if unknown:
        shown = ", ".join(repr(str(key)[:_QUOTED]) for key in unknown)
        raise InvalidRecord(f"{place} has no field {shown}. {takes}", path=path, unknown=unknown)
    missing = [field.name for field in fields if field.required and field.name not in value]
    if missing:
        raise InvalidRecord(
            f"{place} needs {', '.join(map(repr, missing))}; you gave"
            f" {', '.join(value) or 'nothing'}. {takes}",
            path=f"{path}.{missing[0]}" if path else missing[0],
        )
    values: dict[str, Any] = {}
    for field in fields:
        if field.name in value:
            given = value[field.name]
            if type(given) is str and field.is_text:
                values[field.name] = given
                continue
            if type(given) is list and field.is_texts and {*map(type, given)} <= _TEXT_ONLY:
                values[field.name] = tuple(given)
                continue
            inner = f"{path}.{field.name}" if path else field.name
            try:
                values[field.name] = _read_value(field.hint, given, name, inner)
            except msgspec.ValidationError as error:
                reason, _, below = str(error).partition(" - at `$")
                raise InvalidRecord(
                    f"{name}: {reason[:_QUOTED]} - at `$.{inner}{below.removesuffix('`')}`. {takes}",
                    path=inner,
                ) from error
    return record(**values)


def _read_value(hint: Any, value: Any, name: str, path: str) -> Any:
    """Raises :class:`msgspec.ValidationError` for ``value`` itself, else :class:`InvalidRecord`."""
    plain = _plain(hint)
    if _is_record(plain):
        return _read_fields(plain, value, name, path)
    container, arguments = get_origin(plain), get_args(plain)
    if container is Mapping and _is_record(arguments[1]):
        entries = convert(value, dict[str, Any])
        return {
            key: _read_value(arguments[1], entry, name, f"{path}.{key}")
            for key, entry in entries.items()
        }
    if container is tuple and _is_record(arguments[0]):
        items = convert(value, list[Any])
        return tuple(
            _read_value(arguments[0], item, name, f"{path}[{index}]")
            for index, item in enumerate(items)
        )
    if type(value) is int and abs(value) > MAX_INTEGER:
        raise msgspec.ValidationError(f"Expected a number up to {MAX_INTEGER:,}")
    return convert(value, hint, strict=True)


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _plain(hint: Any) -> Any:
    """The hint without annotations, and without the arms of a union that mean absence."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        present = [arm for arm in get_args(hint) if arm not in (type(None), msgspec.UnsetType)]
        return _plain(present[0])
    return hint


def _hint_schema(hint: Any, closed: bool) -> dict[str, Any]:
    schema = _type_schema(_plain(hint), closed)
    metas = _metas(hint)
    for meta in metas:
        for limit, keyword in _LIMITS.items():
            if (bound := getattr(meta, limit)) is not None:
                schema[keyword] = bound
        schema |= meta.extra_json_schema or {}
    for meta in metas:
        if meta.description:
            schema["description"] = meta.description
    return schema


def _metas(hint: Any) -> list[msgspec.Meta]:
    """Every annotation of a hint, the inner ones first."""
    if get_origin(hint) is Annotated:
        outer = [meta for meta in hint.__metadata__ if isinstance(meta, msgspec.Meta)]
        return [*_metas(get_args(hint)[0]), *outer]
    if get_origin(hint) in (Union, types.UnionType):
        return [meta for arm in get_args(hint) for meta in _metas(arm)]
    return []


def _type_schema(plain: Any, closed: bool) -> dict[str, Any]:
    container = get_origin(plain)
    if container is Literal:
        # Some clients refuse an enum without a type; all of ours are strings.
        return {"type": "string", "enum": list(get_args(plain))}
    if container in (list, tuple):
        return {"type": "array", "items": _hint_schema(get_args(plain)[0], closed)}
    if _is_record(plain):
        return record_schema(plain, closed=closed)
    if container is Mapping and _is_record(get_args(plain)[1]):
        return {"type": "object", "additionalProperties": _type_schema(get_args(plain)[1], closed)}
    return {"type": _PLAIN.get(plain, "object")}


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise ValueError(f"the field {key[:_QUOTED]!r} is given twice")
        fields[key] = value
    return fields


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def _parse_finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:_MAX_DIGITS]} is too large a number")
    return value


def _parse_integer(digits: str) -> int:
    # Python's own limit comes later and tells the reader to change the interpreter.
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"{digits[:_MAX_DIGITS]}… is too large a number")
    return int(digits)


def _refuse_surrogates(value: dict[str, Any], name: str) -> None:
    """Half of a surrogate pair cannot be stored, shown or digested."""
    for field, inner in value.items():
        try:
            json.dumps({field: inner}, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            shown = field[:_QUOTED].encode("utf-8", "replace").decode("utf-8")
            raise InvalidRecord(f"{name}: {shown!r} contains half of a surrogate pair.") from error


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_preparing = threading.Lock()
"""msgspec works out what a type is made of when it is first read, and crashes where another thread reads it
meanwhile. So that is done once for each type, by one thread at a time."""


def decoder_of(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of JSON that reads ``kind``; the same one for every call."""
    decoder = _decoders.get(kind)
    if decoder is None:
        with _preparing:
            decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    return decoder


def decode_json(text: str | bytes | bytearray, kind: type[T]) -> T:
    """Read JSON as ``kind``. Raises ``msgspec.DecodeError``, of which ``ValidationError`` is one kind."""
    return decoder_of(kind).decode(text)


def convert(value: object, kind: type[T], *, strict: bool = True) -> T:
    """Read an object of plain data as ``kind``; not ``strict``: texts may be numbers.

    Raises ``msgspec.ValidationError``.
    """
    decoder_of(kind)
    return msgspec.convert(value, kind, strict=strict)

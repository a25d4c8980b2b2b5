"""What all records of a journal row's detail share: how they are written and read.

A record's fields are the keys of the JSON that the journal stores (``docs/reference/journal.md``). Writers
have to name every field, so mypy finds a wrong or missing one. Readers get a record from any JSON: a key
that is missing or of another shape reads as the empty value of its type, because rows written by another
version of cockpit, or put into the file by hand, must not stop a screen or a report.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType, structs

from cockpit.core.read_record import decode_json
from cockpit.core.secrets import masked_json, stays_as_member

# Left as they are, so that writing them fails: msgspec would make text of them.
_NOT_JSON = (bytes, bytearray, datetime, date, time, timedelta, Decimal, UUID)
_MOST = 10**15  # Python refuses to print integers that have thousands of digits.


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """An object inside a detail."""


class Detail(Part, frozen=True, kw_only=True):
    """The detail of one journal row. A key that a writer may leave out has the default ``UNSET``."""


D = TypeVar("D", bound=Part)


def detail_body(record: Part) -> dict[str, Any]:
    """Return the record as the JSON object that the journal stores; ``UNSET`` keys are left out."""
    try:
        return cast(dict[str, Any], msgspec.to_builtins(record, builtin_types=_NOT_JSON))
    except (TypeError, ValueError):  # a mapping of another type inside it
        names = zip(record.__struct_fields__, record.__struct_encode_fields__, strict=True)
        values = ((key, getattr(record, name)) for name, key in names)
        return {key: _plain(value) for key, value in values if value is not UNSET}


_PLAIN_KINDS = frozenset((int, bool, types.NoneType, UnsetType))
_encode = msgspec.json.Encoder(order="sorted").encode


def detail_json(record: Part) -> str:
    """Return the canonical JSON of :func:`detail_body` with its secrets masked.

    Most records hold only numbers and texts that were seen before: msgspec writes these as they are.
    """
    for member in zip(record.__struct_encode_fields__, structs.astuple(record), strict=True):
        kind = type(member[1])
        if kind is str:
            if not stays_as_member(member):
                break
        elif kind not in _PLAIN_KINDS:
            break
    else:
        try:
            return _encode(record).decode()
        except (TypeError, ValueError, OverflowError):
            pass
    return masked_json(detail_body(record))


def decode_detail(kind: type[D], text: str) -> D:
    """Read stored JSON as a record of ``kind``; never raises, whatever the text holds."""
    try:
        return decode_json(text, kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    return read_part(kind, body)


def read_part(kind: type[D], body: object) -> D:
    """Read an object of decoded JSON as a record of ``kind``; never raises, whatever it holds."""
    values = body if isinstance(body, Mapping) else {}
    return kind(**{name: read(values, key) for name, key, read in _readers(kind)})


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return detail_body(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value


_Reader = Callable[[Mapping[str, Any], str], Any]


@cache
def _readers(kind: type[Part]) -> tuple[tuple[str, str, _Reader], ...]:
    hints = get_type_hints(kind)
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    return tuple((name, key, _member(hints[name])) for name, key in names)


def _member(hint: Any) -> _Reader:
    """A reader of an object's member: ``UNSET`` where the field allows that and the key is missing."""
    optional = UnsetType in get_args(hint)
    read = _value(hint)

    def member(values: Mapping[str, Any], key: str) -> Any:
        if key not in values:
            return UNSET if optional else read(None)
        return read(values[key])

    return member


def _value(hint: Any) -> Callable[[Any], Any]:
    """A function that reads any JSON value as ``hint`` says, and what does not fit as empty."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        kinds = [each for each in arguments if each not in (types.NoneType, UnsetType)]
        read = _value(kinds[0])
        if types.NoneType not in arguments:
            return read
        return lambda value: read(value) if _fits(kinds[0], value) else None
    if origin is tuple and arguments[-1] is Ellipsis:
        item, read = arguments[0], _value(arguments[0])
        return lambda value: (
            tuple(read(each) for each in value if _fits(item, each))
            if isinstance(value, list | tuple)
            else ()
        )
    if origin is tuple:
        return lambda value: tuple(_text(each) for each in value)
    if origin in (dict, Mapping):
        kind, read = arguments[1], _value(arguments[1])
        return lambda value: (
            {str(key): read(each) for key, each in value.items() if _fits(kind, each)}
            if isinstance(value, Mapping)
            else {}
        )
    if isinstance(hint, type) and issubclass(hint, Part):
        return lambda value: read_part(hint, value)
    simple: Mapping[Any, Callable[[Any], Any]] = {
        str: _text,
        int: _number,
        float: lambda value: _real(value) or 0.0,
        bool: lambda value: value is True,
    }
    return simple.get(hint, lambda value: value)


def _fits(hint: Any, value: Any) -> bool:
    """Whether a value is of the kind that a list, a mapping or an optional field holds."""
    origin = get_origin(hint) or hint
    if origin is Any or origin is object:
        return True
    if origin is tuple:
        pair = get_args(hint)
        return isinstance(value, list | tuple) and (pair[-1] is Ellipsis or len(value) == len(pair))
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Part)):
        return isinstance(value, Mapping)
    if origin is float:
        return _real(value) is not None
    if isinstance(value, bool):
        return origin is bool
    return isinstance(value, int | float) if origin is int else isinstance(value, str)


def _text(value: Any) -> str:
    """A string; numbers are printed, anything else is ``""``."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return str(_number(value))
    return str(value) if isinstance(value, float) else ""


def _number(value: Any) -> int:
    if isinstance(value, bool):
        return 0
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    return max(-_MOST, min(value, _MOST)) if isinstance(value, int) else 0


def _real(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None

"""What all records of a journal row's detail share: how they are written and read.

A record's fields are the keys of the JSON that the journal stores (``docs/reference/journal.md``). Writers
have to name every field, so mypy finds a wrong or missing one. Readers get a record from any JSON: a key
that is missing or of another shape reads as the empty value of its type, because rows that were put into the
file by hand must not stop a screen or a report.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from cockpit.core.read_record import convert, decode_json
from cockpit.core.secrets import masked_json

# Left as they are, so that writing them fails: msgspec would make text of them.
_NOT_JSON = (bytes, bytearray, datetime, date, time, timedelta, Decimal, UUID)


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """An object inside a detail."""


class Detail(Part, frozen=True, kw_only=True):
    """The detail of one journal row. A key that a writer may leave out has the default ``UNSET``."""


D = TypeVar("D", bound=Part)


def detail_body(record: Part) -> dict[str, Any]:
    """Return the record as the JSON object that the journal stores; ``UNSET`` keys are left out."""
    body = msgspec.to_builtins(record, builtin_types=_NOT_JSON, enc_hook=_as_object)
    return cast(dict[str, Any], body)


def _as_object(value: Any) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is not JSON")


def record_row(kind: type[D], row: object, **own: Any) -> D:
    """Return the record of a table's row: the fields of its columns' names, and ``own``."""
    names = [name for name in kind.__struct_fields__ if name not in own and hasattr(row, name)]
    return kind(**{name: getattr(row, name) for name in names}, **own)


def detail_json(record: Part) -> str:
    """Return the canonical JSON of :func:`detail_body` with its secrets masked."""
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
    return kind(**{name: _read(hint, values.get(key, UNSET)) for name, key, hint in _fields(kind)})


@cache
def _fields(kind: type[Part]) -> tuple[tuple[str, str, Any], ...]:
    hints = get_type_hints(kind)
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    return tuple((name, key, hints[name]) for name, key in names)


_EMPTY: Mapping[Any, Any] = {str: "", int: 0, float: 0.0, bool: False, tuple: (), Mapping: {}}


def _read(hint: Any, value: Any) -> Any:
    """Read a value as ``hint`` says, and what does not fit as empty."""
    arms = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if value is UNSET and UnsetType in arms:
        return UNSET
    wanted = next(arm for arm in arms if arm not in (types.NoneType, UnsetType))
    is_optional, container = types.NoneType in arms, get_origin(wanted) or wanted
    if isinstance(wanted, type) and issubclass(wanted, Part):
        if is_optional and not isinstance(value, Mapping):
            return None
        return read_part(wanted, value)
    if container is tuple and isinstance(value, list | tuple) and get_args(wanted)[-1] is Ellipsis:
        return tuple(_read(get_args(wanted)[0], member) for member in value)
    try:
        return convert(value, wanted)
    except msgspec.ValidationError:
        return None if is_optional else _EMPTY.get(container)

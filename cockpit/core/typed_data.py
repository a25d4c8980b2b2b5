"""Read data as records: JSON and plain objects, checked against a type.

msgspec works out what a record is made of when it is first read, and crashes where another thread reads it
meanwhile. Here that is done once for each type, by one thread at a time.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_preparing = threading.Lock()


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

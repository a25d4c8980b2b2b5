"""Canonical JSON and digests: the same value gives the same bytes in every process.

msgspec encodes what it writes exactly as Python's encoder does, at a quarter of the time: text, whole
numbers, booleans, null, lists, and objects with text as keys. Everything else goes to Python's encoder:
floats, whose exponents msgspec writes differently, other keys, lone surrogates, and values that JSON does
not have. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

# One encoder: json.dumps would make one for every call, and 50,000 facts are 150,000 calls.
_encode_any = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
_fast: list[Callable[[Any], bytes]] = []
_parse: list[Callable[[str], Any]] = []
_SCALARS = frozenset((str, int, bool, type(None)))


def canonical_json(value: Any, *, is_plain: bool = False) -> str:
    """Encode as JSON with sorted keys and no spaces. NaN and infinities raise ``ValueError``.

    ``is_plain`` promises that there are only text, whole numbers, booleans, null, lists and objects in it,
    which large values need not be searched for then.
    """
    try:
        if is_plain or _is_plain(value):
            encode = _fast[0] if _fast else _load_fast()
            return encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        pass  # other keys, a lone surrogate, or deeper than msgspec goes
    return _encode_any(value)


def parse_json(text: str) -> Any:
    """Parse JSON that the store keeps, as ``json.loads`` does, which takes ten times as long."""
    decode = _parse[0] if _parse else _load_parser()
    try:
        return decode(text)
    except (ValueError, TypeError, RecursionError):  # msgspec's error is a ValueError
        return json.loads(text)


def _load_parser() -> Callable[[str], Any]:
    """Use msgspec once it is imported: hook calls, which an agent waits for, do not need it."""
    if "msgspec" not in sys.modules:
        return json.loads
    import msgspec

    _parse.append(msgspec.json.Decoder().decode)
    return _parse[0]


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is dict:
        value = value.values()
    elif kind is not list and kind is not tuple:
        return False
    for member in value:  # noqa: SIM110 - all() over a generator takes twice as long
        if type(member) not in _SCALARS and not _is_plain(member):
            return False
    return True


def _load_fast() -> Callable[[Any], bytes]:
    """Import msgspec at the first call: hook calls, which an agent waits for, do not need it."""
    import msgspec

    _fast.append(msgspec.json.Encoder(order="sorted").encode)
    return _fast[0]


def digest(value: Any) -> str:
    """Return the sha256 (hex) of the canonical JSON of ``value``."""
    return text_digest(canonical_json(value))


def text_digest(text: str) -> str:
    """Return the sha256 (hex) of the text in UTF-8.

    Different lone surrogates give different digests.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

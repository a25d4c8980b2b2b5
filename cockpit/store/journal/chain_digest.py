"""The digest of a journal row, which covers the row before it.

Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from cockpit.core.canonical_json import canonical_json, text_digest


def follows(previous: str, values: tuple[Any, ...], sealed: str) -> bool:
    """Tell whether a row, with its digest at the end, follows from the digest ``previous``."""
    try:
        return bool(chain_digest(previous, values[:-1], sealed) == values[-1])
    except TypeError:
        return False  # A column contains bytes; cockpit writes no such row.


def chain_digest(
    previous: str, values: tuple[Any, ...], sealed: str = "", *, is_plain: bool = False
) -> str:
    """Return the digest of a row that follows ``previous``; ``is_plain``: it is a row of ours."""
    columns = (*values, sealed) if sealed else values
    if is_plain:
        try:
            # The bytes of canonical JSON, as canonical_json itself would get them.
            return sha256(b"%b\n%b" % (previous.encode(), _encode_plain(columns))).hexdigest()
        except (TypeError, ValueError):
            pass  # a lone surrogate
    return text_digest(f"{previous}\n{canonical_json(columns, is_plain=is_plain)}")


_encode_plain = msgspec.json.Encoder(order="sorted").encode

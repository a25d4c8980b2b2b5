"""Canonical JSON and digests: the same value gives the same bytes in every process.

Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

# One encoder: json.dumps would make one for every call, and 50,000 facts are 150,000 calls.
_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def canonical_json(value: Any) -> str:
    """Encode as JSON with sorted keys and no spaces. NaN and infinities raise ``ValueError``."""
    return _encode(value)


def digest(value: Any) -> str:
    """Return the sha256 (hex) of the canonical JSON of ``value``."""
    return text_digest(canonical_json(value))


def text_digest(text: str) -> str:
    """Return the sha256 (hex) of the text in UTF-8.

    Different lone surrogates give different digests.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

"""Canonical JSON and digests: the same value gives the same bytes, in any process, on any day."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces. NaN and infinities raise ``ValueError``."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(value: Any) -> str:
    """sha256 (hex) of the canonical JSON of ``value``."""
    return text_digest(canonical_json(value))


def text_digest(text: str) -> str:
    """sha256 (hex) of UTF-8 text; lone surrogates are kept apart, not merged."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

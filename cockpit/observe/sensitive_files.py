"""Files that are stored as a reference and an outline instead of their content.

These are files whose purpose is to hold secrets (only the names that they set are stored) and texts too
large for any packet (only the outline is stored). Agents can request lines of a large file, but not of a
file of secrets. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import re

from cockpit.access.secret_files import is_sensitive

LARGE_BYTES = 262_144
"""Texts of more bytes than this are stored by reference."""

# What follows the sign keeps the padding of base64, which ends a line, from looking like a name.
_NAME = re.compile(
    r"\s{0,16}(?:export\s{1,4}|set\s{1,4})?[\"']?([A-Za-z_][\w.-]{0,47})[\"']?\s{0,8}"
    r"(?:=(?=[ \t]{0,8}[^\s=])|:(?=\s|$))"
)
_MOST_NAMES = 200


def why_by_reference(path: str, size: int) -> str:
    """Explain why ``size`` bytes of the file ``path`` are stored by reference; empty if they are not."""
    if is_sensitive(path):
        return "holds secrets: only the names in it, by reference"
    if size > LARGE_BYTES:
        return f"{size:,} bytes are too many for a packet: its outline, by reference; ask for lines"
    return ""


def list_setting_names(text: str) -> str:
    """List the names that a settings file sets, one a line with its number, without values."""
    lines = [
        f"{number}: {match[1]}=…"
        for number, line in enumerate(text.split("\n"), start=1)
        if (match := _NAME.match(line))
    ]
    more = len(lines) - _MOST_NAMES
    return "\n".join([*lines[:_MOST_NAMES], f"… {more} more names"] if more > 0 else lines)

"""Cut a long diff for the first message of a review. See ``docs/reference/task-types.md``."""

from __future__ import annotations

DIFF_MAX = 51_200
"""Bytes of UTF-8 that a diff may take in the first message: 50 KiB."""

DIFF_NOTICE = "[Diff truncated at 50KB. Use 'read <path>' for specific files.]"


def cut_diff(diff: str, limit: int = DIFF_MAX) -> str:
    """Return the whole lines of ``diff`` that fit ``limit`` bytes of UTF-8, with the notice if cut."""
    raw = diff.encode()
    if len(raw) <= limit:
        return diff
    end = raw.rfind(b"\n", 0, limit)
    head = raw[: end + 1].decode()
    return f"{head}{DIFF_NOTICE}\n"

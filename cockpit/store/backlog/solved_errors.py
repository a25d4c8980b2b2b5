"""Errors of work in progress that are solved: each pattern names errors that later work made good.

A pattern is a table of texts, and an error matches when all of them do: ``type``, ``message`` and ``command``
are those of the error, ``file`` is its file in any line, and every word of ``words`` is in its command, or is
a folder or a file of a word there. See ``docs/reference/work-in-progress.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def keep_unsolved(
    errors: Sequence[Mapping[str, Any]], patterns: Sequence[Mapping[str, str]]
) -> list[Mapping[str, Any]]:
    """Return the errors that no pattern matches, in their order."""
    return [error for error in errors if not any(_matches(error, pattern) for pattern in patterns)]


def _matches(error: Mapping[str, Any], pattern: Mapping[str, str]) -> bool:
    return bool(pattern) and all(
        _field_matches(error, name, value) for name, value in pattern.items()
    )


def _field_matches(error: Mapping[str, Any], name: str, value: str) -> bool:
    if name == "words":
        words = str(error.get("command", "")).split()
        return all(any(_covers(word, other) for other in words) for word in value.split())
    stored = str(error.get(name, ""))
    if name == "file":
        path, _, line = stored.rpartition(":")
        return value == (path if line.isdigit() else stored)
    return stored == value


def _covers(word: str, other: str) -> bool:
    return other == word or other.startswith((f"{word.rstrip('/')}/", f"{word}::"))

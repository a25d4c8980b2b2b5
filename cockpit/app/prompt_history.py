"""Messages that were sent in a project, for the history of the prompt: a file of its state."""

from __future__ import annotations

import json
import os
from collections import deque

from cockpit.core.project_paths import ProjectPaths
from cockpit.core.secrets import mask

_NAME = "prompt-history.jsonl"
_ENTRIES_MOST = 1_000
_BYTES_MOST = 2_000_000
_ENTRY_MOST = 20_000


def load(place: ProjectPaths) -> list[str]:
    """Return the newest messages, the oldest first; none when they cannot be read."""
    entries: deque[str] = deque(maxlen=_ENTRIES_MOST)
    try:
        with open(place.state / _NAME, encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # the last line of a program that was cut off
                if isinstance(entry, str):
                    entries.append(entry)
    except OSError:
        return []
    return list(entries)


def append(place: ProjectPaths, text: str) -> None:
    """Add a message, its secrets masked; a file that is too long keeps its newer half. Raises OSError."""
    path = place.state / _NAME
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8") as file:
        file.write(json.dumps(mask(text)[:_ENTRY_MOST]) + "\n")
        size = file.tell()
    if size > _BYTES_MOST:
        entries = load(place)
        kept = "".join(json.dumps(entry) + "\n" for entry in entries[len(entries) // 2 :])
        shorter = path.with_suffix(".new")
        with os.fdopen(
            os.open(shorter, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(kept)
        shorter.replace(path)

"""The draft of the prompt on disk: it survives a restart."""

from __future__ import annotations

import os
from pathlib import Path

from cockpit.core.project_paths import ProjectPaths

_NAME = "draft.txt"
_MOST = 1_000_000


def load(place: ProjectPaths) -> str:
    """Return the saved draft; empty when there is none or it cannot be read."""
    try:
        return (place.state / _NAME).read_text(encoding="utf-8", errors="replace")[:_MOST]
    except OSError:
        return ""  # a draft that cannot be read must not keep the screen from opening


def save(place: ProjectPaths, text: str) -> None:
    """Save ``text``; an empty text removes the file. Raises OSError."""
    path = place.state / _NAME
    if not text:
        path.unlink(missing_ok=True)
        return
    temporary = path.with_suffix(".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    Path(temporary).replace(path)

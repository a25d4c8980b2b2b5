"""The prompt's draft on disk, so that it survives a restart."""

from __future__ import annotations

import os
from pathlib import Path

from cockpit.core.project_paths import ProjectPaths

_NAME = "draft.txt"
_MOST = 1_000_000


def load(place: ProjectPaths) -> str:
    """The draft that was left; empty when there is none or it cannot be read."""
    try:
        return (place.state / _NAME).read_text(encoding="utf-8", errors="replace")[:_MOST]
    except OSError:
        return ""  # a draft that cannot be read must not keep the screen from opening


def save(place: ProjectPaths, text: str) -> None:
    """Keep ``text``, or nothing when it is empty. Raises OSError when the disk refuses."""
    path = place.state / _NAME
    if not text:
        path.unlink(missing_ok=True)
        return
    fresh = path.with_suffix(".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(fresh, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    Path(fresh).replace(path)

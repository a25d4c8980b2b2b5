"""Files that run with an action and are not in it.

They are pinned by content when the action is shown, and compared when it runs.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

_LARGEST = 16 * 1024 * 1024


class PinnedFile(Struct, frozen=True):
    """A file by its path (from the project's root, or absolute) and the SHA-256 of its content."""

    path: str
    sha256: str

    def payload(self) -> dict[str, Any]:
        """Return it as part of an action's payload."""
        return {"path": self.path, "sha256": self.sha256}


def pin_files(root: Path, paths: Iterable[Path]) -> tuple[PinnedFile, ...]:
    """Pin files; a link is pinned with the file that it leads to. What is not a file is left out."""
    pins = []
    for path in sorted(set(paths)):
        content = _read(path)
        if content is not None:
            name = path.relative_to(root) if path.is_relative_to(root) else path
            pins.append(PinnedFile(str(name), hashlib.sha256(content).hexdigest()))
    return tuple(pins)


def describe_change(shown: Sequence[PinnedFile], now: Sequence[PinnedFile]) -> str:
    """Say which file is not as it was shown; '' when all are."""
    before, after = ({pin.path: pin.sha256 for pin in pins} for pins in (shown, now))
    for path in sorted({*before, *after}):
        if path not in before:
            return f"{path} is new since this was shown"
        if path not in after:
            return f"{path} is gone since this was shown"
        if before[path] != after[path]:
            return f"{path} changed since this was shown"
    return ""


def _read(path: Path) -> bytes | None:
    if path.is_dir():
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        # Of a longer one its size counts as well.
        data = file.read(_LARGEST)
        longer = len(data) == _LARGEST
        return data + str(os.fstat(descriptor).st_size).encode() if longer else data
